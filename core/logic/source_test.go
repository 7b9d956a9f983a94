package logic_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Generated source answers as Lookup does.
func TestGeneratedSource(t *testing.T) {
	for name, l := range map[string]*logic.Logic{
		"both":    build(t, logic.Options{Ranges: true, Loss: 0.1, Fallback: logic.Nearest}),
		"model":   build(t, logic.Options{Ranges: true, Fallback: logic.Model}),
		"nearest": build(t, logic.Options{Fallback: logic.Nearest}),
		"uneven":  uneven(t),
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 7))
			sizes := append([]logic.Size{}, measured(t).Sizes[:9]...)
			for i := range l.Exact {
				sizes = append(sizes, l.Exact[i].Size)
			}
			for range 500 {
				sizes = append(sizes, logic.Size{1 + random.IntN(6001), 1 + random.IntN(6001), 1 + random.IntN(2),
					1 + random.IntN(2003)})
			}
			var asked, want strings.Builder
			for _, s := range sizes {
				k, layer := l.Lookup(s)
				number := map[logic.Layer]int{logic.LayerExact: 0, logic.LayerRange: 1, logic.LayerNearest: 2,
					logic.LayerModel: 3}[layer]
				fmt.Fprintf(&asked, "%d %d %d %d\n", s[logic.J], s[logic.I], s[logic.B], s[logic.L])
				fmt.Fprintf(&want, "%d %d\n", k, number)
			}
			source, err := l.Go("main", "Cijk_Ailk_Bljk_HHS_BH")
			must.Do(t, err)
			run(t, asked.String(), want.String(), map[string]string{"logic.go": string(source), "main.go": goMain,
				"go.mod": "module generated\n\ngo 1.26\n"}, "go", "build", "-o", "run", ".")
			if source, err = l.C("mine", "Cijk_Ailk_Bljk_HHS_BH"); err != nil {
				t.Fatal(err)
			}
			cc, err := exec.LookPath("cc")
			if err != nil {
				t.Skip("there is no C compiler")
			}
			run(t, asked.String(), want.String(), map[string]string{"logic.h": string(source), "main.c": cMain}, cc, "-std=c99",
				"-Wall", "-Wextra", "-Werror", "-O1", "-o", "run", "main.c", "-lm")
		})
	}
	l := build(t, logic.Options{})
	must.Fail(t, must.Err(l.Go("no name", "")), "is no name of a Go package")
	must.Fail(t, must.Err(l.C("9", "")), "is no prefix of names in C")
}

// uneven is a logic with ranges that end in different ways: below a largest size, and for all that are left.
func uneven(t *testing.T) *logic.Logic {
	t.Helper()
	leaf := func(most, kernel int) logic.Rule { return logic.Rule{Most: most, Kernel: kernel} }
	of := func(most int, rules ...logic.Rule) logic.Rule { return logic.Rule{Most: most, Rules: rules} }
	l := &logic.Logic{Arch: "gfx900", Kernels: []logic.Kernel{{Name: "a"}, {Name: "b\"?"}, {Name: "c"}},
		Exact: []logic.Entry{{Size: logic.Size{256, 3136, 64, 128}, Kernel: 2},
			{Size: logic.Size{512, 16, 1, 512}, Kernel: 1}},
		Order: []int{logic.B, logic.L, logic.I, logic.J}, Fallback: logic.Model,
		Ranges: []logic.Rule{of(9, of(64, of(128, leaf(32, 0), leaf(-1, 1)), of(-1, leaf(-1, 1))),
			of(-1, of(5000, leaf(4, 0), leaf(64, 1), leaf(900, 2))))}}
	must.Do(t, l.Prepare())
	return l
}

const goMain = `package main

import "fmt"

func main() {
	var m, n, b, k int
	for {
		if _, err := fmt.Scan(&m, &n, &b, &k); err != nil {
			return
		}
		fmt.Println(Select(m, n, b, k))
	}
}
`

const cMain = `#include <stdio.h>
#include "logic.h"

int main(void) {
	int m, n, b, k, layer;
	while (scanf("%d %d %d %d", &m, &n, &b, &k) == 4) {
		const int kernel = mine_select(m, n, b, k, &layer);
		if (kernel >= 0 && !mine_kernels[kernel]) return 1;
		printf("%d %d\n", kernel, layer);
	}
	return 0;
}
`

// run builds and runs a program.
func run(t *testing.T, in, want string, files map[string]string, command ...string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	compile := exec.Command(command[0], command[1:]...)
	compile.Dir = folder
	compile.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOWORK=off", "GOPROXY=off")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program := exec.Command(filepath.Join(folder, "run"))
	program.Stdin = strings.NewReader(in)
	out := must.Get(program.Output())(t)
	must.Equal(t, cmp.Diff(strings.Split(want, "\n"), strings.Split(string(out), "\n")), "", command[0])
}
