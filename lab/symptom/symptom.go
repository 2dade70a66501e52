package symptom

// Symptom is one cause: what it means and what mends it.
type Symptom struct {
	ID      ID
	Meaning string // one plain sentence
	// Hint is what to do, with exact commands. It never wipes a member's data, a CNI directory or a runtime's state as a first step.
	Hint string
	// Sources are upstream threads, as OWNER/REPOSITORY#NUMBER; there may be none.
	Sources []string
	// Repairable says that the lab can repair it without asking anybody.
	Repairable bool
	// Minor says that it stops nothing by itself.
	Minor bool
	// Measured says that only labctl's own measurements show it: no text of another program names it.
	Measured bool
}
