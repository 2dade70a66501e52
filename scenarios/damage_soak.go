package scenarios

import (
	"context"
	"time"
)

// DamageSoaked is the result of a soak of damage.
type DamageSoaked struct {
	Seed   uint64    `json:"seed,string"`
	First  int       `json:"first"` // number of the first round
	Rounds []Damaged `json:"rounds"`
	Score  Score     `json:"score"`

	Shortest   []int     `json:"shortest,omitempty"`   // rounds after which the lab could not be restored
	Reproduced bool      `json:"reproduced,omitempty"` // it could not be restored again when they were replayed
	Replayed   []Damaged `json:"replayed,omitempty"`
}

// Score counts how rounds ended. Harmless damage and what could not be made count in neither share.
type Score struct {
	Rounds        int     `json:"rounds"`
	Named         int     `json:"named"`
	Misnamed      int     `json:"misnamed"`
	Silent        int     `json:"silent"`
	Healed        int     `json:"healed"`
	DeadEnds      int     `json:"dead_ends"`
	Lost          int     `json:"lost"`
	Harmless      int     `json:"harmless"`
	NotApplicable int     `json:"not_applicable"`
	SetupFailed   int     `json:"setup_failed"`
	NamedShare    float64 `json:"named_share"`  // of named, misnamed and silent; 0 without any
	HealedShare   float64 `json:"healed_share"` // of healed, dead ends and lost; 0 without any
}

// SoakDamage plays rounds, from the number first on, until so many are played, the time is over, a lab could not be restored, or two
// rounds in a row could not be set up. It goes on after other misses. within is a limit for the start of a round; 0 is none.
func SoakDamage(ctx context.Context, seed uint64, first, rounds int, within time.Duration, play func(n int) Damaged) DamageSoaked {
	s := DamageSoaked{Seed: seed, First: first}
	begun := time.Now()
	for n := first; n < first+rounds && ctx.Err() == nil && (within == 0 || time.Since(begun) < within); n++ {
		round := play(n)
		if ctx.Err() != nil {
			break // it says nothing about the lab
		}
		s.Rounds = append(s.Rounds, round)
		if s.Unrestored() || s.stuck() {
			break
		}
	}
	s.Score = scoreOf(s.Rounds)
	return s
}

// Unrestored tells whether the lab is not as before the last round, although it was healthy then.
func (s *DamageSoaked) Unrestored() bool {
	return len(s.Rounds) > 0 && unrestored(s.Rounds[len(s.Rounds)-1])
}

func unrestored(d Damaged) bool { return !d.Restored && d.Class == Failed }

func (s *DamageSoaked) stuck() bool {
	n := len(s.Rounds)
	return n > 1 && s.Rounds[n-1].Class == SetupFailed && s.Rounds[n-2].Class == SetupFailed
}

// Shorten looks for the shortest sequence of rounds after which the lab cannot be restored, playing at most that many rounds. anew is
// called before each sequence.
func (s *DamageSoaked) Shorten(ctx context.Context, most int, anew func() error, play func(n int) Damaged) (err error) {
	var numbers []int
	for _, d := range s.Rounds {
		numbers = append(numbers, d.Round)
	}
	alone := func(int) []int { return nil }
	s.Shortest, s.Reproduced, s.Replayed, err = shortest(ctx, numbers, most, alone, anew, play, unrestored)
	return err
}

func scoreOf(rounds []Damaged) Score {
	s := Score{Rounds: len(rounds)}
	count := map[any]*int{
		Named: &s.Named, Misnamed: &s.Misnamed, Silent: &s.Silent, Harmless: &s.Harmless, Healed: &s.Healed, DeadEnd: &s.DeadEnds, Lost: &s.Lost,
		NotApplicable: &s.NotApplicable, SetupFailed: &s.SetupFailed,
	}
	for _, d := range rounds {
		for _, how := range []any{d.Class, d.Named, d.Healed} {
			if n := count[how]; n != nil {
				*n++
			}
		}
	}
	s.NamedShare = share(s.Named, s.Named+s.Misnamed+s.Silent)
	s.HealedShare = share(s.Healed, s.Healed+s.DeadEnds+s.Lost)
	return s
}

func share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

// Missed tells whether the round has to be explained: the damage was not named, or the lab did not get over it.
func (d Damaged) Missed() bool { return d.Class == Failed || d.Class == SetupFailed }
