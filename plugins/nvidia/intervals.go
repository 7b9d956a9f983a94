package nvidia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// interval is one line of data.Intervals, with the fields that a model needs.
type interval struct {
	Arch, Device, Model string
	Rung                arch.Rung
	Uncertainty         struct {
		Kernel, Source string
		Level, Spread  float64
		PlanSpread     float64 `json:"plan_spread"`
		Widening       float64
		Checked        checked
		Ranges         []struct {
			Bound     *string
			Below     *float64 `json:"below_seconds"`
			Low, High float64
		}
	}
}

// checked is arch.Checked as `eval --intervals` writes it.
type checked struct {
	DataSet string `json:"data_set"`
	Sizes   int
	Layouts []struct {
		DType  string
		Out    string `json:"out_dtype"`
		TransA bool   `json:"trans_a"`
		TransB bool   `json:"trans_b"`
	}
	Divisor               ends
	Split                 ends `json:"split_k"`
	M, N, K, Batch, Flops ends
}

type ends [2]float64

func (c *checked) core() (arch.Checked, error) {
	of := func(e ends) arch.Range { return arch.Range{Low: e[0], High: e[1]} }
	out := arch.Checked{
		DataSet: strings.TrimPrefix(c.DataSet, folder), Sizes: c.Sizes, Divisor: of(c.Divisor), Split: of(c.Split),
		M: of(c.M), N: of(c.N), K: of(c.K), Batch: of(c.Batch), Flops: of(c.Flops),
	}
	for _, l := range c.Layouts {
		stored := gemm.Record{M: 1, N: 1, K: 1, Batch: 1, TransA: l.TransA, TransB: l.TransB, DType: l.DType, Out: l.Out}
		p, err := stored.Problem()
		if err != nil {
			return out, err
		}
		out.Layouts = append(out.Layouts, arch.LayoutOf(&p))
	}
	return out, nil
}

// folder is the place of the data sets as `make intervals` names them.
const folder = "plugins/nvidia/data/"

// intervals reads the embedded file.
var intervals = sync.OnceValue(func() []interval {
	var all []interval
	for line := range bytes.Lines(data.Intervals) {
		var one interval
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		all = append(all, one)
	}
	return all
})

// uncertaintyOf returns the uncertainty of an opened model's times. It is empty if the model was not compared with
// measurements of the device.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	bounds := map[string]arch.Bound{}
	for b := arch.BoundUnknown; b <= arch.BoundLatency; b++ {
		bounds[b.String()] = b
	}
	var uncertainty []arch.Uncertainty
	for _, one := range intervals() {
		if one.Arch != d.Arch || one.Device != d.Device || one.Model != d.Model || one.Rung != d.Rung {
			continue
		}
		u := arch.Uncertainty{
			Kernel: one.Uncertainty.Kernel, Level: one.Uncertainty.Level,
			Sigma: one.Uncertainty.Spread, PlanSigma: one.Uncertainty.PlanSpread,
			Source: strings.ReplaceAll(one.Uncertainty.Source, folder, ""), Widening: one.Uncertainty.Widening,
		}
		var err error
		if u.Checked, err = one.Uncertainty.Checked.core(); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err))
		}
		for _, r := range one.Uncertainty.Ranges {
			e := arch.ErrorRange{Low: r.Low, High: r.High}
			if r.Bound != nil {
				e.Bound = bounds[*r.Bound]
			}
			if r.Below != nil {
				e.Below = unit.Seconds(*r.Below)
			}
			u.Ranges = append(u.Ranges, e)
		}
		uncertainty = append(uncertainty, u)
	}
	return uncertainty
}
