// Package checked has how far the predicted times of kernel family library are from published times. It is apart from
// those, which only the command line needs.
package checked

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the file
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
)

// checked.jsonl.gz is written by `make checked`.
//
//go:embed checked.jsonl.gz
var zipped []byte

// unchecked.jsonl is written by `make checked`: how far times of generations are from what is predicted without their
// own fitted values.
//
//go:embed unchecked.jsonl
var unchecked []byte

type line struct {
	Model, Scheme, Timing string
	DTypes, Releases      []string
	Uncertainty           arch.Uncertainty
}

// The releases of a library. AnyRelease is that of a question that names none.
const (
	AnyRelease = "any"
	Current    = "current"
	Early      = "early"
)

// overtaken is the factor by which the upper ends of ranges grow for a question that names no release, on a device of
// which times of an early one were published too: later ones are faster. With it, the ranges hold 90 % of the early
// times of an H100 and 92 to 99 % of the others (TestAnyRelease).
const overtaken = 1.2

var lines = sync.OnceValue(func() []byte {
	var all []byte
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err == nil {
		all, err = io.ReadAll(z)
	}
	if err != nil {
		panic(fmt.Sprintf("checked.jsonl.gz: %v", err)) // a test reads it
	}
	return all
})

// Unchecked returns the uncertainty of the times of a kernel family that nobody compared on the likes of a device: of
// types in which enough generations of its vendor were compared, and then of all.
func Unchecked(kernel, vendor string) (all []arch.Uncertainty) {
	for text := range bytes.Lines(unchecked) {
		var one struct {
			Vendor      string
			Uncertainty arch.Uncertainty
		}
		if err := json.Unmarshal(text, &one); err != nil {
			panic(fmt.Sprintf("unchecked.jsonl: %v", err))
		}
		u := one.Uncertainty
		u.Contain()
		if u.Kernel = kernel; one.Vendor == "" || one.Vendor == vendor {
			all = append(all, u)
		}
	}
	return all
}

// Of returns the uncertainty of the times of a model of a device (arch@device) of a vendor, an entry for each type, for
// a scheme of scales, a release of the library and a timing: of the device in this timing, in any, then of its sisters,
// then of all. Without scales and with one for a whole matrix are the same.
func Of(device, vendor, model, scheme, release, timing string) []arch.Uncertainty {
	architecture, _, _ := strings.Cut(device, "@")
	own := of(device, model, scheme)
	out := own.uncertainties(own, release, timing)
	for _, u := range of(architecture, model, scheme).uncertainties(own, release, timing) {
		// A device is no sister of itself.
		if names := strings.Split(strings.TrimPrefix(u.Source, sources), ", "); slices.Contains(names, device) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == device })
			u.Evidence, u.Source = arch.EvidenceRelated, sources+strings.Join(append([]string{"this device"}, names...), ", ")
		}
		out = append(out, u)
	}
	return append(out, Unchecked(model, vendor)...)
}

// sources begins the source of what several devices say, before their names.
const sources = "published times of "

// said are what lines say of a device, or of the sisters of an architecture.
type said []line

func of(device, model, scheme string) (found said) {
	plain := func(s string) bool { return s == "" || s == "none" || s == "tensor" }
	// Opening a model decodes the lines of its device alone, which takes a millisecond less.
	begin := fmt.Appendf(nil, `{"device":%q,`, device)
	for text := range bytes.Lines(lines()) {
		if !bytes.HasPrefix(text, begin) {
			continue
		}
		var one line
		if err := json.Unmarshal(text, &one); err != nil {
			panic(fmt.Sprintf("checked.jsonl.gz: %v", err))
		}
		one.Uncertainty.Contain()
		fp4 := plain(scheme) && strings.HasPrefix(one.Scheme, "block") && !strings.Contains(one.Scheme, "+") &&
			slices.Equal(one.DTypes, []string{"fp4"}) // which always has such scales
		if one.Model == model && (one.Scheme == scheme || plain(one.Scheme) && plain(scheme) || fp4) {
			found = append(found, one)
		}
	}
	return found
}

// uncertainties are those of lines for a release and a timing. A question that names no release is about the current
// one. Of a device with times of an early one apart, it is of no known series, and its ranges reach farther.
func (s said) uncertainties(device said, release, timing string) (out []arch.Uncertainty) {
	for i := range s {
		one := &s[i]
		apart := release == AnyRelease && slices.ContainsFunc(device, func(other line) bool {
			return slices.Equal(other.DTypes, one.DTypes) && !slices.Contains(other.Releases, Current)
		})
		wanted := strings.Replace(release, AnyRelease, Current, 1)
		if !slices.Contains(one.Releases, wanted) || one.Timing != "" && (one.Timing != timing || apart) {
			continue
		}
		for j := range one.Uncertainty.Ranges {
			if apart {
				one.Uncertainty.Ranges[j].High *= overtaken
			}
		}
		out = append(out, one.Uncertainty)
	}
	return out
}
