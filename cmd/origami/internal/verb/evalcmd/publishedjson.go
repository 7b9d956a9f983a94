package evalcmd

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
)

// publishedObject is what `eval --published --json` writes; docs/json.md describes it.
type publishedObject struct {
	Kernel    string               `json:"kernel"` // the kernel family, and the models that answered
	Models    []string             `json:"models"`
	RanksOnly bool                 `json:"ranks_only,omitempty"` // `true` if one of the models predicts no times
	Times     int                  `json:"times"`                // the number of published times that were asked about
	Groups    []publishedGroupJSON `json:"groups"`               // per device, type and scheme
	// the numbers of `score` by class of shape, over all groups
	Classes []ask.Object `json:"classes"`
	// per pair of devices, type, scheme and `class` of shape: `first`, `second`, `dtype`, `scheme`, `shapes`, `within`,
	// `decided` (measured ratios over 1.1), `winner` (`null` if none was decided); `sure` (one of the two has odds of 90
	// to 95 % to be faster), `sure_right`; `brier`, the mean of (odds − 1 or 0)², and `brier_apart`, that of deciding
	// only where intervals do not touch
	Pairs    []ask.Object          `json:"pairs"`
	AllPairs ask.Object            `json:"all_pairs"` // the numbers of `pairs` over all
	Sources  []publishedSourceJSON `json:"sources"`   // the sources of the times
	// parts with published times that no plugin has a device file for
	Without  []string         `json:"without_model"`
	Doubtful []publishedDoubt `json:"not_scored"` // published times that are not scored
	// how intervals hold for another source of a device, and for another device of an architecture
	LeftOut []publishedLeftOut `json:"left_out"`
}

// publishedLeftOut is how intervals hold where the times that they are of did not count.
type publishedLeftOut struct {
	Evidence arch.Evidence `json:"evidence" enum:"checked,sister"` // another source, or another device
	// the share of the times that the intervals hold, each source or device with the same weight
	Held  float64 `json:"held"`
	Width float64 `json:"width"` // the median of high ÷ low
	// by class of shape, the share of the times
	Classes map[string]ask.Number `json:"classes"`
	Groups  []publishedGroupOut   `json:"groups"` // the hardest first
}

type publishedGroupOut struct {
	Name  string  `json:"name"`         // the source, or the device
	Of    string  `json:"of"`           // the device or architecture, the types, the scheme of scales
	Times int     `json:"times"`        // how many
	Held  float64 `json:"held"`         // as above
	Width float64 `json:"width"`        // as above
	Error float64 `json:"error_median"` // the median of \|predicted ÷ measured − 1\|
}

// addLeftOut adds a grade, unless nothing could be left out.
func (o *publishedObject) addLeftOut(evidence arch.Evidence, f *score.Ungrouped) {
	if len(f.Left) == 0 {
		return
	}
	out := publishedLeftOut{Evidence: evidence, Held: f.Held, Width: f.Width, Classes: map[string]ask.Number{}}
	for _, l := range score.Layers() {
		if share := f.Layers[l]; !math.IsNaN(share) {
			out.Classes[l.String()] = ask.Number(share)
		}
	}
	for _, g := range f.Left {
		out.Groups = append(out.Groups, publishedGroupOut{g.Name, g.Part, g.Times, g.Held, g.Width, g.Error})
	}
	slices.SortStableFunc(out.Groups, func(a, b publishedGroupOut) int { return cmp.Compare(a.Held, b.Held) })
	o.LeftOut = append(o.LeftOut, out)
}

type publishedGroupJSON struct {
	Device string `json:"device"` // as `arch@device`
	Part   string `json:"part"`   // as published
	DType  string `json:"dtype"`  // the type, and the scheme of scales
	Scheme string `json:"scheme"`
	// `times`; `geomean`, `p10`, `p90` of predicted ÷ measured; `within` (20 %); `error_median`; `ceiling_problems`,
	// the problems that several stacks timed, and `ceiling`, how often these agree. `null` without times, or with one
	// stack
	Score   ask.Object   `json:"score"`
	Refused int          `json:"not_modelled"` // how many times the model refuses, and why the first
	Reason  string       `json:"reason,omitempty"`
	Classes []ask.Object `json:"classes"` // each with `class` and the numbers of `score`
}

type publishedSourceJSON struct {
	ID      string `json:"id"`      // its name
	Address string `json:"address"` // where it is
	Licence string `json:"licence"` // its licence
	Timing  string `json:"timing"`  // how it was timed
}

func (o *publishedOutcome) object() publishedObject {
	all := o.all()
	pairs, together := o.comparisons()
	out := publishedObject{
		Kernel: o.kernel, Models: o.models, RanksOnly: o.ranksOnly, Times: len(o.times),
		Groups: []publishedGroupJSON{}, Classes: classColumns.Objects(all.classes), Pairs: pairColumns.Objects(pairs),
		AllPairs: comparability.Object(&together), Sources: []publishedSourceJSON{},
		Without:  append([]string{}, o.without...),
		Doubtful: append([]publishedDoubt{}, o.doubts()...), LeftOut: []publishedLeftOut{},
	}
	sources, devices := leftOut(o.intervals())
	out.addLeftOut(arch.EvidenceChecked, &sources)
	out.addLeftOut(arch.EvidenceSister, &devices)
	for _, g := range o.groups() {
		group := publishedGroupJSON{Device: g.device, Part: g.part, DType: g.dtype, Scheme: g.scheme,
			Score: accuracy.Object(&g.publishedClass), Refused: g.refused, Classes: classColumns.Objects(g.classes)}
		if g.reason != nil {
			group.Reason = g.reason.Error()
		}
		out.Groups = append(out.Groups, group)
	}
	for _, s := range o.sourcesOf() {
		out.Sources = append(out.Sources, publishedSourceJSON{s.ID, s.Address, s.Licence, s.Timed})
	}
	return out
}
