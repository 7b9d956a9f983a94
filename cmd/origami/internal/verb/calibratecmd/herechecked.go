package calibratecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
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
	// whose intervals these are: `own` of these times, or those before, which are narrower: `confirmed` where the times
	// of this GPU hold them, `kept` where others of its kind were timed, or too few here
	Ranges string `json:"ranges"`

	bits int
	left digits.Number // the share of times in the intervals that were found without them
}

// believed is what answers say of these kernels.
type believed struct {
	Evidence arch.Evidence `json:"evidence"`                   // the worst evidence
	Width    digits.Number `json:"high_over_low" unit:"ratio"` // the median of high ÷ low of their intervals
	Held     digits.Number `json:"held" unit:"fraction"`       // the share of times in them: after, of sizes left out
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

// leastHeld is the share of times in intervals of 90 % below which these do not hold here: of 20 times, fewer are in
// them by chance in 4 of 100 cases (binomial distribution).
const leastHeld = 0.8

// check finds the intervals that the times of a part give. Those that were there stay if they hold and are narrower.
func (h *hereRun) check(ctx context.Context, p *part, file []byte) error {
	for _, side := range []struct {
		file []byte
		to   *comparison
	}{{nil, &p.was}, {file, &p.now}} {
		a, err := h.open(ctx, p.Kernel, side.file)
		if err != nil {
			return err
		}
		if *side.to, err = compareTimes(ctx, a, p.Kernel, p.times); err != nil {
			return err
		}
	}
	p.Before, p.Ranges = p.was.believed(p.Kernel), "kept"
	rows, d := p.now.rows, p.now.of
	if len(rows) <= score.MinSizes { // one is left out in turn
		return nil
	}
	day := time.Now().UTC().Format(time.DateOnly)
	each := score.EachAlone(rows)
	left, before := score.LeaveOneOut(each, func(int) {}), p.was.widest(p.Kernel)
	u := score.CalibrateRows(p.Kernel, "origami here, "+day, rows, score.ErrorRanges(each))
	u.Sigma, u.PlanSigma, u.MedianError, u.Checked.Times = before.Sigma, before.PlanSigma, 0, 0
	u.Source = fmt.Sprintf("origami here over %d sizes, %s; of a size left out they hold %s", len(rows), day,
		digits.Percent(left.Points))
	p.Ranges, p.left = "own", digits.Number(left.Points)
	switch narrower := float64(p.Before.Width) <= left.Width; {
	case narrower && p.Before.Evidence == arch.EvidenceChecked && p.Before.Held >= leastHeld:
		p.Ranges = "kept"
		return nil
	case narrower && p.Before.Held >= score.Level && before.Widening >= 1:
		u.Ranges, u.Widening, p.Ranges, p.left = before.Ranges, before.Widening, "confirmed", p.Before.Held
		u.Source = fmt.Sprintf("%s; they hold %s of %d times here, %s", before.Source, digits.Percent(float64(p.left)),
			len(rows), day)
	}
	text, err := json.Marshal(arch.OwnTimes{Version: h.version, Model: d.Model, Rung: d.Rung,
		Confirmed: p.Ranges == "confirmed", Uncertainty: u})
	row := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &row)
	}
	h.sheet.Checked = append(h.sheet.Checked, row)
	return err
}

// widest returns the uncertainty of the model's that has the widest ranges of those that apply to the rows.
func (c *comparison) widest(kernel string) (u arch.Uncertainty) {
	for i := range c.rows {
		s := c.of.Scope(kernel, &c.rows[i].Problem, c.rows[i].Config.SplitK).Uncertainty
		if s == nil {
			return arch.Uncertainty{}
		}
		if w := s.WidestRange(); u.Ranges == nil || w.High/w.Low > u.WidestRange().High/u.WidestRange().Low {
			u = *s
		}
	}
	return u
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
		p.now.of = a.Describe()
		if p.After = p.now.believed(p.Kernel); p.Ranges != "kept" {
			p.After.Held = p.left
		}
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
		key("after.evidence", "after"), key("after.high_over_low", "high ÷ low"), key("after.held"),
		key("ranges", "intervals"))
	if err == nil && h.Format() != show.JSON {
		s.Note(fmt.Sprintf("every answer about %s uses %s from now on; to forget, remove it", a.Name, a.File))
	}
	return err
}
