package main

import (
	"go/parser"
	"go/token"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const example = `package example

type key struct {
	user string
	all  bool
}

func (k *key) of(users map[string]int, user string) (key, error) {
	if users[user] > 1 && user != "" {
		users[user] = 3
		log.Info("seen")
	}
	switch {
	case k == nil:
		return key{}, errNone
	}
	return key{user: user, all: true}, check(user)
}
`

// A mutation that changes nothing, or that is no Go, would be reported as one that the tests see or do not see.
func TestMutationsChangeOnePlaceAndStillParse(t *testing.T) {
	found, err := mutationsIn("example.go", example)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range found {
		changed := m.apply(example)
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, changed, 0); err != nil || changed == example+zero {
			t.Errorf("%s: %v:\n%s", m.name(), err, changed)
		}
		if slices.Contains(names, m.name()) {
			t.Errorf("two are called %s", m.name())
		}
		names = append(names, m.name())
	}
	for _, want := range []string{
		"example.go key.of `users[user] > 1 && user != \"\"` → `!(users[user] > 1 && user != \"\")`",
		"example.go key.of `users[user] > 1 && user != \"\"` → `users[user] > 1`",
		"example.go key.of `users[user] > 1 && user != \"\"` → `user != \"\"`",
		"example.go key.of `users[user] > 1` → `users[user] >= 1`",
		"example.go key.of `1` → `2`",
		"example.go key.of `users[user] = 3` → `if false { users[user] = 3 }`",
		"example.go key.of `k == nil` → `!(k == nil)`",
		"example.go key.of `errNone` → `nil`",
		"example.go key.of `user` → `mutatedZero(user)`",
		"example.go key.of `true` → `false`",
		"example.go key.of `check(user)` → `nil`",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if all := strings.Join(names, "\n"); strings.Contains(all, "log.Info(\"seen\")` → `if") {
		t.Errorf("what is only logged is left out: %s", all)
	}
}

// An overnight run is continued by the same seed, so it has to choose the same.
func TestSameSeedChoosesTheSameMutations(t *testing.T) {
	found, err := mutationsIn("example.go", example)
	if err != nil {
		t.Fatal(err)
	}
	deal := func(seed uint64) (names []string) {
		for _, m := range dealt(slices.Clone(found), rand.New(rand.NewPCG(seed, 0))) {
			names = append(names, m.name())
		}
		return names
	}
	if one := deal(1); !slices.Equal(one, deal(1)) || slices.Equal(one, deal(2)) || len(one) != len(found) {
		t.Errorf("of %d: %v", len(found), one)
	}
}
