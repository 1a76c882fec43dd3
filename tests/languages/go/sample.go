// Package words counts.
package words

import "strings"

const limit = 10

type Words struct {
	text  string
	total int
}

type Finder interface {
	Find(name string) (int, error)
}

// Count counts.
func Count(text string, limits ...int) map[string]int {
	found := map[string]int{}
	walk := func(word string) {
		found[word]++
	}
	help := `
func notOne() {
}
`
	for _, word := range strings.Fields(text + help) {
		walk(word)
	}
	return found
}

func (w *Words) Find(
	name string,
	other int,
) (int, error) {
	switch name {
	case "":
		return 0, nil
	}
	return w.total, nil
}

var last = 1
