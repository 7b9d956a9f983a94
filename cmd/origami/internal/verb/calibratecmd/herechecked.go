package calibratecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
)

// hered is the answer of `here`.
type hered struct {
	Name    string        `json:"driver_device_name"` // the driver's name of the GPU
	Arch    string        `json:"arch"`               // its architecture
	Device  string        `json:"device"`             // what later answers call it, as `arch@device`
	File    string        `json:"file"`               // the device file
	Records string        `json:"records"`            // the folder of what was measured
	Numbers int           `json:"numbers"`            // how many numbers the microbenchmarks gave
	Checked []checkedHere `json:"checked"`            // what was checked
}

// checkedHere compares the predicted times of a kernel family with the times of this GPU.
type checkedHere struct {
	Kernel string   `json:"kernel"` // the kernel family
	Types  []string `json:"dtypes"` // the types of the operands
	Times  int      `json:"times"`  // how many kernels have a time
	Before believed `json:"before"` // what answers knew without these times
	After  believed `json:"after"`  // and what they know from now on

	bits int
}

// believed is what answers say of these kernels.
type believed struct {
	Evidence arch.Evidence `json:"evidence"`                   // the worst evidence
	Width    digits.Number `json:"high_over_low" unit:"ratio"` // the median of high ÷ low of their intervals
	Held     digits.Number `json:"held" unit:"fraction"`       // the share of times in them: after, each beside the others
}

// comparison is the predictions of a model beside the measured times.
type comparison struct {
	of   *arch.Description
	rows []score.Row
}

// compareTimes asks a model for the times of measured kernels.
func compareTimes(ctx context.Context, a arch.Architecture, kernel string, times []dataset.Measurement) (
	c comparison, err error,
) {
	c.of = a.Describe()
	stopwatch, of := timing.New(a), timing.Timing(c.of.Timing)
	for i := range times {
		m := &times[i]
		var rows []score.Row
		if m.Library == "" {
			rows, err = score.Predict(ctx, a, m.Problem, times[i:i+1])
		} else {
			var bad []error
			if rows, bad, err = score.Fastest(ctx, a, kernel, []gemm.Problem{m.Problem}); err == nil {
				rows[0].Measured, err = m.Median, bad[0]
			}
		}
		switch {
		case err != nil && diag.KindOf(err) != diag.Input:
			return c, err
		case err == nil && rows[0].Reject == "": // else the model has no time
			rows[0].Added = stopwatch.Added(&m.Problem, of)
			c.rows = append(c.rows, rows[0])
		}
	}
	return c, nil
}

// believed sums up what the intervals of the model's are worth.
func (c *comparison) believed(kernel string) believed {
	b := believed{Evidence: arch.EvidenceChecked}
	var widths []float64
	scope := func(p *gemm.Problem, split int) arch.Scope { return c.of.Scope(kernel, p, split) }
	for i := range c.rows {
		r := &c.rows[i]
		if grade := scope(&r.Problem, r.Config.SplitK).Evidence; grade.Worse(b.Evidence) {
			b.Evidence = grade
		}
		if low, high, ok := r.Interval(scope); ok {
			widths = append(widths, float64(high/low))
		}
	}
	held, of := score.Held(c.rows, scope)
	b.Width, b.Held = digits.Number(stats.Median(widths)), digits.Number(float64(held)/float64(of))
	return b
}

// check compares a part's times with the predictions before, with the GPU's numbers, and with these and other times.
func (h *hereRun) check(ctx context.Context, p *part, file []byte) error {
	before, err := h.open(ctx, p.Kernel, nil)
	if err != nil {
		return err
	}
	was, err := compareTimes(ctx, before, p.Kernel, p.times)
	if err != nil {
		return err
	}
	p.Before = was.believed(p.Kernel)
	a, err := h.open(ctx, p.Kernel, file)
	if err != nil {
		return err
	}
	own, held, of := h.own(p), 0, 0
	for i := range own {
		rows := slices.Delete(slices.Clone(own), i, i+1)
		c, err := compareTimes(ctx, residual.Beside(a, &residual.Times{Of: "times of this GPU", Like: a,
			Intervals: true, Rows: residual.ByKernel(rows)}), p.Kernel, p.times[i:i+1])
		if err != nil {
			return err
		}
		n, all := score.Held(c.rows, func(x *gemm.Problem, split int) arch.Scope { return c.of.Scope(p.Kernel, x, split) })
		held, of = held+n, of+all
	}
	p.After.Held = digits.Number(float64(held) / float64(of))
	for i := range own {
		text, err := json.Marshal(own[i])
		row := map[string]any{}
		if err == nil {
			err = json.Unmarshal(text, &row)
		}
		if err != nil {
			return err
		}
		h.sheet.Times = append(h.sheet.Times, row)
	}
	return nil
}

// own are the times of a part, as a device file has them.
func (h *hereRun) own(p *part) (all []residual.Measured) {
	for i := range p.times {
		m := &p.times[i]
		if m.Library != "" {
			m.Config = gemm.Config{}
		}
		m.Config.Kernel = p.Kernel
		all = append(all, residual.Measured{Problem: m.Problem, Config: m.Config, Time: m.Median,
			Timing: timing.Events})
	}
	return all
}

// save writes the device file, and finds what answers know with it.
func (h *hereRun) save(ctx context.Context) error {
	text, err := hw.EncodeSheet(h.sheet)
	if err != nil {
		return err
	}
	for _, p := range h.checked {
		a, err := h.open(ctx, p.Kernel, text)
		if err != nil {
			return err
		}
		now, err := compareTimes(ctx, a, p.Kernel, p.times)
		if err != nil {
			return err
		}
		held := p.After.Held
		p.After = now.believed(p.Kernel)
		p.After.Held = held
	}
	return session.Replace(h.file, slices.Concat(fmt.Appendf(nil, "# %s, measured by %s (origami here).\n", h.device.Name,
		session.Software()), text))
}

// write writes the summary.
func (h *hereRun) write() error {
	a := &hered{Name: h.device.Name, Arch: h.device.Arch, Device: h.sheet.Arch + "@" + h.sheet.Device, File: h.file,
		Records: h.folder, Numbers: h.numbers, Checked: []checkedHere{}}
	for _, p := range h.checked {
		a.Checked = append(a.Checked, p.checkedHere)
	}
	key := show.Key[checkedHere]
	s := h.Streams
	err := show.Answer(s, h.Format(), a, func() {
		show.Line(s, "device", "%s (%s)", a.Name, a.Device)
		show.Line(s, "numbers", "%d from microbenchmarks", a.Numbers)
		s.Printf("\n")
	}, a.Checked, key("kernel"),
		show.Text("types", func(c *checkedHere) string { return strings.Join(c.Types, ", ") }), key("times"),
		key("before.evidence", "before"), key("before.high_over_low", "high ÷ low"), key("before.held"),
		key("after.evidence", "after"), key("after.high_over_low", "high ÷ low"), key("after.held"))
	if err == nil && h.Format() != show.JSON {
		s.Note(fmt.Sprintf("every answer about %s uses %s from now on; to forget, remove it", a.Name, a.File))
	}
	return err
}
