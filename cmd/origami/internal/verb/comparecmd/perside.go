package comparecmd

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// fromDevice is the word for the number of the device file.
const fromDevice = "tdp"

// perSide is a flag with a positive number for each of some sides.
type perSide struct {
	word string // a word that may stand for all numbers, empty if there is none

	all     bool // the word was given
	amounts []amount
}

type amount struct {
	name  string
	value float64
}

// String implements pflag.Value.
func (p *perSide) String() string { return "" }

// Type implements pflag.Value.
func (p *perSide) Type() string { return "ARCH=NUMBER" }

// Set implements pflag.Value.
func (p *perSide) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if p.word != "" && part == p.word {
			p.all = true
			continue
		}
		name, number, ok := strings.Cut(part, "=")
		v, err := strconv.ParseFloat(number, 64)
		if !ok || name == "" || err != nil || !(v > 0 && v < 1e12) {
			return errors.New("is not ARCH=NUMBER")
		}
		p.amounts = append(p.amounts, amount{name, v})
	}
	return nil
}

func (p *perSide) given() bool { return p.all || len(p.amounts) > 0 }

// assign tells each side its number.
func (p *perSide) assign(flag string, sides []ask.Contender, set func(*ask.Contender, float64)) error {
	if p.all {
		for i := range sides {
			if s := &sides[i]; s.Err == nil {
				tdp, _ := hw.Set(s.Model.Describe().Params).Lookup(fromDevice)
				set(s, tdp.Value)
			}
		}
	}
	for _, a := range p.amounts {
		found := false
		for i := range sides {
			if goesBy(&sides[i].Found, a.name) {
				set(&sides[i], a.value)
				found = true
			}
		}
		if !found {
			names := make([]string, len(sides))
			for i := range sides {
				names[i] = sides[i].Called()
			}
			return diag.Inputf("no architecture of the comparison is called %q", a.name).
				At("%s %s=%v", flag, a.name, a.value).Do("use %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// goesBy reports whether a name means a side. A what-if goes by the names of its device too.
func goesBy(s *models.Found, name string) bool {
	names := append([]string{s.Named, s.Called(), s.ID(), s.Label(), s.Device.ID, s.Arch.ID}, s.Device.Aliases...)
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
