package evalcmd

import "github.com/origami-gemm/origami/ask"

// publishedObject is what `eval --published --json` writes; docs/json.md describes it.
type publishedObject struct {
	Kernel    string               `json:"kernel"` // the kernel family, and the models that answered
	Models    []string             `json:"models"`
	RanksOnly bool                 `json:"ranks_only,omitempty"` // `true` if one of the models predicts no times
	Times     int                  `json:"times"`                // the number of published times that were asked about
	Groups    []publishedGroupJSON `json:"groups"`               // per device, type and scheme
	// the numbers of `score` by class of shape, over all groups
	Classes []ask.Object `json:"classes"`
	// per pair of devices, type and scheme: `first`, `second`, `dtype`, `scheme`, `shapes`, `within`, `decided`
	// (measured ratios over 1.1), `winner` (`null` if none was decided)
	Pairs    []ask.Object          `json:"pairs"`
	AllPairs ask.Object            `json:"all_pairs"` // `shapes`, `within`, `decided`, `winner` over all pairs
	Sources  []publishedSourceJSON `json:"sources"`   // the sources of the times
	// parts with published times that no plugin has a device file for
	Without  []string         `json:"without_model"`
	Doubtful []publishedDoubt `json:"not_scored"` // published times that are not scored
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
		Doubtful: append([]publishedDoubt{}, o.doubts()...),
	}
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
