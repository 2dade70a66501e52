package chain

type record struct{ number int }

func (r record) read() int { return sum(holder{r}) }
