package laddercmd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
)

// writer writes an outcome.
type writer struct {
	*outcome
	terms bool
}

// The JSON of `ladder`.
type (
	object struct {
		Arch    string        `json:"arch"`
		Device  string        `json:"device"`
		Model   string        `json:"model"`
		Kernel  string        `json:"kernel"`
		Problem gemm.Record   `json:"problem"`
		Rungs   []rungJSON    `json:"rungs"`
		Claims  []verdictJSON `json:"claims"`
	}
	rungJSON struct {
		Rung      string             `json:"rung"`
		Doc       string             `json:"doc"`
		Config    *gemm.Config       `json:"config"`
		Rejected  string             `json:"rejected,omitempty"`
		Requested *float64           `json:"flop_per_requested_byte"`
		L2        *float64           `json:"flop_per_l2_byte"`
		DRAM      *float64           `json:"flop_per_dram_byte"`
		Conflicts *float64           `json:"conflict_degree"`
		Costs     map[string]float64 `json:"cost_seconds,omitempty"`
		Predicted *float64           `json:"predicted_seconds"`
		Limit     string             `json:"limited_by,omitempty"`
		Measured  *float64           `json:"measured_seconds"`
		Ratio     *float64           `json:"predicted_over_measured"`
		Source    string             `json:"source,omitempty"`
	}
	verdictJSON struct {
		Rung     string `json:"rung"`
		Claim    string `json:"claim"`
		Verdict  string `json:"verdict"`
		Evidence string `json:"evidence"`
	}
)

func (w *writer) write(s *iostreams.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, w.object())
	case table.Table:
		w.table(s)
		return nil
	default:
		header, rows := w.numbers()
		return table.WriteRows(s, f, header, rows)
	}
}

// table writes the rungs, and below them the claims.
func (w *writer) table(s *iostreams.Streams) {
	s.Printf("device      %s (%s)\n", w.desc.DeviceName, w.desc.ID())
	s.Printf("problem     %s\n\n", w.problem)
	header, rows := w.rungs()
	table.WriteTable(s, header, rows)
	s.Printf("\n")
	header, rows = w.claims()
	table.WriteTable(s, header, rows)
	for _, source := range w.sources() {
		s.Note("measured: " + source)
	}
}

// sources are where measured times are from, each once.
func (w *writer) sources() (list []string) {
	for i := range w.entries {
		if source := w.entries[i].Source; source != "" && !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	return list
}

// The terms that are columns.
const (
	requested = "intensity_requested"
	atL2      = "intensity_l2"
	atDRAM    = "intensity_dram"
	conflicts = "conflict_degree"
)

// rungs is the table for readers.
func (w *writer) rungs() (header []string, rows [][]string) {
	header = []string{"rung", "FLOP/B asked", "at L2", "at DRAM", "conflicts", "predicted", "rate", "limited by",
		"measured", "predicted ÷ measured"}
	fixed := len(header)
	if w.terms {
		for _, c := range w.ladder.Costs {
			header = append(header, c.Name)
		}
	}
	for i := range w.entries {
		e := &w.entries[i]
		row := make([]string, len(header))
		row[0] = e.Rung.Name
		if e.Rejected != "" {
			row[7] = "does not fit: " + e.Rejected
		}
		if e.Measured > 0 {
			row[8] = e.Measured.String()
		}
		if e.Values == nil {
			rows = append(rows, row)
			continue
		}
		row[1], row[2], row[3] = three(e.Values[requested]), three(e.Values[atL2]), three(e.Values[atDRAM])
		if degree := e.Values[conflicts]; degree > 0 {
			row[4] = three(degree)
		}
		row[5] = e.Predicted.String()
		row[6] = table.Rate(w.rate(e.Predicted), w.problem.DType)
		most, share := ladder.Dominant(w.ladder.Costs, e.Values)
		row[7] = fmt.Sprintf("%s (%s)", most.Name, table.Percent(share))
		if e.Measured > 0 {
			row[9] = fmt.Sprintf("%.2f", float64(e.Predicted/e.Measured))
		}
		if w.terms {
			for j, c := range w.ladder.Costs {
				row[fixed+j] = table.Percent(c.Seconds(e.Values, w.desc.Clock) / float64(e.Predicted))
			}
		}
		rows = append(rows, row)
	}
	return header, rows
}

func three(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// claims is the table of verdicts.
func (w *writer) claims() (header []string, rows [][]string) {
	for _, j := range w.verdicts {
		rows = append(rows, []string{j.Verdict.String(), j.Rung + " " + j.Text, j.Evidence})
	}
	return []string{"verdict", "claim", "evidence"}, rows
}

// numbers is the table for programs: full numbers, in base units. Each line says of which problem and device it is.
func (w *writer) numbers() (header []string, rows [][]string) {
	header = slices.Concat(gemm.Columns, []string{"arch", "device", "model", "kernel", "rung", "config",
		"flop_per_requested_byte", "flop_per_l2_byte", "flop_per_dram_byte", "conflict_degree"})
	about := append(w.problem.Cells(), w.desc.Arch, w.desc.Device, w.desc.Model, w.ladder.Family)
	for _, c := range w.ladder.Costs {
		header = append(header, c.Column()+"_seconds")
	}
	header = append(header, "predicted_seconds", "limited_by", "measured_seconds", "source")
	for i := range w.entries {
		e := &w.entries[i]
		row := []string{e.Rung.Name, "", "", "", "", ""}
		limited, predicted, measured := "", "", ""
		if e.Values != nil {
			row = []string{e.Rung.Name, e.Rung.Config.String(), table.SixDigits(e.Values[requested]),
				table.SixDigits(e.Values[atL2]), table.SixDigits(e.Values[atDRAM]), table.SixDigits(e.Values[conflicts])}
			most, _ := ladder.Dominant(w.ladder.Costs, e.Values)
			limited, predicted = most.Column(), table.SixDigits(float64(e.Predicted))
		}
		for _, c := range w.ladder.Costs {
			cell := ""
			if e.Values != nil {
				cell = table.SixDigits(c.Seconds(e.Values, w.desc.Clock))
			}
			row = append(row, cell)
		}
		if e.Measured > 0 {
			measured = table.SixDigits(float64(e.Measured))
		}
		rows = append(rows, slices.Concat(about, row, []string{predicted, limited, measured, e.Source}))
	}
	return header, rows
}

func (w *writer) object() object {
	out := object{Arch: w.desc.Arch, Device: w.desc.Device, Model: w.desc.Model, Kernel: w.ladder.Family,
		Problem: w.problem.Record()}
	for i := range w.entries {
		e := &w.entries[i]
		r := rungJSON{Rung: e.Rung.Name, Doc: e.Rung.Doc, Rejected: e.Rejected, Source: e.Source}
		if e.Rung.Config != (gemm.Config{}) {
			r.Config = &e.Rung.Config
		}
		number := func(v float64) *float64 { return &v }
		if e.Measured > 0 {
			r.Measured = number(float64(e.Measured))
		}
		if v := e.Values; v != nil {
			r.Requested, r.L2, r.DRAM = number(v[requested]), number(v[atL2]), number(v[atDRAM])
			r.Conflicts = number(v[conflicts])
			r.Predicted, r.Costs = number(float64(e.Predicted)), map[string]float64{}
			for _, c := range w.ladder.Costs {
				r.Costs[c.Column()] = c.Seconds(v, w.desc.Clock)
			}
			most, _ := ladder.Dominant(w.ladder.Costs, v)
			r.Limit = most.Column()
			if e.Measured > 0 {
				r.Ratio = number(float64(e.Predicted / e.Measured))
			}
		}
		out.Rungs = append(out.Rungs, r)
	}
	for _, j := range w.verdicts {
		out.Claims = append(out.Claims, verdictJSON{j.Rung, j.Text, j.Verdict.String(), j.Evidence})
	}
	return out
}
