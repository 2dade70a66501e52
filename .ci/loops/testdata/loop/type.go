package loop

type counter struct{ count int }

var shared counter
