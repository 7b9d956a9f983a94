package archcmd

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// view is what `arch show` shows.
type view struct {
	*arch.Description
	Levels     []arch.Level
	OptionDocs map[string]string
	Plugin     string
}

// The JSON of `arch show`.
type (
	object struct {
		Arch               string       `json:"arch"`
		Device             string       `json:"device"`
		Name               string       `json:"name"`
		Vendor             string       `json:"vendor"`
		Aliases            []string     `json:"aliases"`
		Plugin             string       `json:"plugin"`
		Model              string       `json:"model"`
		Models             []string     `json:"models"`
		Kernels            []string     `json:"kernels"`
		Axes               []axis       `json:"axes,omitempty"`
		Types              []types      `json:"types,omitempty"`
		Rung               arch.Rung    `json:"rung"`
		RungReason         string       `json:"rung_reason,omitempty"`
		RanksOnly          bool         `json:"ranks_only,omitempty"`
		Live               *render.Live `json:"live,omitempty"`
		UnitName           string       `json:"unit_name"`
		Units              int          `json:"units"`
		Partitions         int          `json:"partitions"`
		ClockHz            float64      `json:"clock_hz"`
		ClockRung          arch.Rung    `json:"clock_rung"`
		SharedMemory       float64      `json:"shared_memory_bytes"`
		RegisterFile       int          `json:"register_file"`
		RegistersPerThread int          `json:"registers_per_thread"`
		Peak               []peak       `json:"peak"`
		Atoms              []atom       `json:"atoms"`
		Levels             []level      `json:"levels"`
		Parameters         []parameter  `json:"parameters"`
		Constants          []constant   `json:"constants"`
		Options            []option     `json:"options"`
		Terms              []termSchema `json:"terms"`
		Monotone           []string     `json:"monotone,omitempty"`

		Uncertainty []arch.UncertaintyRecord `json:"uncertainty,omitempty"`
		Fitted      []fitted                 `json:"fitted,omitempty"`
	}
	axis struct {
		Kernel  string   `json:"kernel"`
		Name    string   `json:"name"`
		Type    string   `json:"type"`
		Values  []string `json:"values"`
		Default string   `json:"default"`
		Unit    string   `json:"unit,omitempty"`
		Doc     string   `json:"doc"`
	}
	types struct {
		Kernel   string `json:"kernel"`
		Operands string `json:"operands"`
		Results  string `json:"results"`
	}
	peak struct {
		DType string  `json:"dtype"`
		Rate  float64 `json:"flops_per_second"`
	}
	atom struct {
		DType   string  `json:"dtype"`
		M       int     `json:"m"`
		N       int     `json:"n"`
		K       int     `json:"k"`
		Latency float64 `json:"latency_cycles"`
		PerUnit int     `json:"per_unit"`
	}
	level struct {
		Name       string  `json:"name"`
		Capacity   float64 `json:"capacity_bytes"`
		Partitions int     `json:"partitions"`
		Latency    float64 `json:"latency_cycles"`
		Peak       float64 `json:"peak_bytes_per_cycle"`
		Fraction   string  `json:"fraction"`
		Bound      string  `json:"bound"`
	}
	parameter struct {
		Name   string  `json:"name"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
		Tier   string  `json:"tier"`
		Method string  `json:"method"`
		Source string  `json:"source"`
		Date   string  `json:"date,omitempty"`
		Used   *bool   `json:"used,omitempty"`
	}
	constant struct {
		Name   string  `json:"name"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
		Doc    string  `json:"doc"`
		Source string  `json:"source"`
	}
	option struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		Doc   string `json:"doc"`
	}
	termSchema struct {
		Name    string `json:"name"`
		Unit    string `json:"unit"`
		Kind    string `json:"kind"`
		Formula string `json:"formula"`
		Doc     string `json:"doc"`
		Source  string `json:"source"`
		Common  string `json:"common,omitempty"`
	}
)

func write(s *iostreams.Streams, f table.Format, v *view) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, v.object())
	case table.CSV, table.TSV:
		return writeRecords(s, f, v)
	default:
		writeText(s, v)
		return nil
	}
}

func (v *view) object() object {
	o := object{
		Arch: v.Arch, Device: v.Device, Name: v.DeviceName, Vendor: v.Vendor, Aliases: append([]string{}, v.Aliases...),
		Plugin: v.Plugin,
		Model:  v.Model, Models: v.Models, Kernels: v.Kernels, Rung: v.Rung, RungReason: v.RungReason, RanksOnly: v.RanksOnly,
		Live:     render.LiveJSON(v.Description),
		UnitName: v.UnitName, Units: v.Units, Partitions: v.Partitions, ClockHz: float64(v.Clock),
		ClockRung:    v.ClockRung,
		SharedMemory: float64(v.SharedMemory), RegisterFile: v.RegisterFile, RegistersPerThread: v.RegistersPerThread,
		Peak: []peak{}, Atoms: []atom{}, Levels: []level{}, Parameters: []parameter{}, Constants: []constant{},
		Options: []option{}, Terms: []termSchema{},
	}
	for _, f := range v.Families {
		for _, t := range f.Types {
			o.Types = append(o.Types, types{f.Name, t.In.String(), t.Out.String()})
		}
		for _, x := range f.Axes {
			o.Axes = append(o.Axes, axis{f.Name, x.Name, x.Type.String(), append([]string{}, x.Values...),
				x.Default, x.Unit,
				x.Doc})
		}
	}
	for _, p := range v.Peak {
		o.Peak = append(o.Peak, peak{p.DType.String(), float64(p.Rate)})
	}
	for _, a := range v.Atoms {
		o.Atoms = append(o.Atoms, atom{a.DType.String(), a.M, a.N, a.K, float64(a.Latency), a.PerUnit})
	}
	for _, l := range v.Levels {
		o.Levels = append(o.Levels, level{l.Name, float64(l.Capacity), l.Partitions, float64(l.Latency),
			float64(l.Bandwidth.Peak), fraction(l.Bandwidth), l.Bound.String()})
	}
	for _, p := range v.Params {
		o.Parameters = append(o.Parameters, parameter{p.Name, p.Value, p.Unit, p.Tier.String(),
			string(p.Method), p.Source,
			p.Date, render.Used(v.Description, p.Name)})
	}
	for _, c := range v.Constants {
		o.Constants = append(o.Constants, constant{c.Name, c.Value, c.Unit, c.Doc, c.Source})
	}
	for _, opt := range v.Options {
		o.Options = append(o.Options, option{opt.Key, opt.Value, v.OptionDocs[opt.Key]})
	}
	for _, dim := range v.Monotone {
		o.Monotone = append(o.Monotone, dim.String())
	}
	for i := range v.Uncertainty {
		o.Uncertainty = append(o.Uncertainty, v.Uncertainty[i].Record())
	}
	o.Fitted = fittedJSON(v.Fitted)
	for _, t := range v.Terms {
		o.Terms = append(o.Terms, termSchema{t.Name, t.Unit, render.TermKind(t.Kind), t.Formula, t.Doc,
			t.Source, t.Common})
	}
	return o
}

// writeRecords writes the hardware numbers, a row each.
func writeRecords(s *iostreams.Streams, f table.Format, v *view) error {
	rows := [][]string{}
	for _, p := range v.Params {
		used := ""
		if v.Ignores(p.Name) {
			used = "false"
		}
		rows = append(rows, []string{v.Arch, v.Device, p.Name, table.Exact(p.Value), p.Unit, p.Tier.String(),
			string(p.Method), p.Source, p.Date, used})
	}
	return table.WriteRows(s, f, []string{"arch", "device", "name", "value", "unit", "tier", "method",
		"source", "date",
		"used"}, rows)
}

func writeText(s *iostreams.Streams, v *view) {
	writeCard(s, v)
	t := tables{s}
	var rows [][]string
	for _, p := range v.Params {
		rows = append(rows, []string{p.Name, table.Parameter(p.Value, p.Unit), p.Tier.String(),
			string(p.Method), p.Date,
			render.SourceOf(v.Description, &p)})
	}
	t.write("Hardware numbers", []string{"name", "value", "tier", "method", "date", "source"}, rows)
	rows = nil
	for _, a := range v.Atoms {
		rows = append(rows, []string{
			a.DType.String(), fmt.Sprintf("%dx%dx%d", a.M, a.N, a.K), table.SixDigits(float64(a.Latency)),
			fmt.Sprint(a.PerUnit),
		})
	}
	t.writeIfAny("Matrix instructions", []string{"dtype", "shape", "cycles", "per " + v.UnitName}, rows)
	rows = nil
	for _, l := range v.Levels {
		capacity := "all"
		if l.Capacity > 0 {
			capacity = table.SixDigits(float64(l.Capacity))
		}
		rows = append(rows, []string{
			l.Name, capacity, fmt.Sprint(l.Partitions), table.SixDigits(float64(l.Latency)),
			table.SixDigits(float64(l.Bandwidth.Peak)), fraction(l.Bandwidth),
		})
	}
	t.write("Memory levels, near to far",
		[]string{"level", "bytes", "partitions", "latency (cycles)", "peak (B/cycle)",
			"share of peak, a = active " + v.UnitName + "s"}, rows)
	rows = nil
	for _, c := range v.Constants {
		rows = append(rows, []string{c.Name, table.Quantity(c.Value, c.Unit), c.Doc, c.Source})
	}
	t.writeIfAny("Constants of the model", []string{"name", "value", "what", "source"}, rows)
	for i := range v.Uncertainty {
		t.writeUncertainty(&v.Uncertainty[i])
	}
	t.writeFitted(v.Fitted)
	t.writeAxes(v.Families)
	rows = nil
	for _, o := range v.Options {
		rows = append(rows, []string{o.Key, o.Value, v.OptionDocs[o.Key]})
	}
	t.writeIfAny("Options (--option key=value)", []string{"key", "value", "what"}, rows)
}

// writeCard writes the lines above the tables.
func writeCard(s *iostreams.Streams, v *view) {
	line := func(label, format string, args ...any) { table.Line(s, label, format, args...) }
	table.Lines(s, append(render.DeviceLines(v.Description),
		render.ModelLine(v.Description, strings.Join(v.Kernels, ", ")))...)
	line("vendor", "%s, plugin %s", v.Vendor, v.Plugin)
	if len(v.Aliases) > 0 {
		line("aliases", "%s", strings.Join(v.Aliases, ", "))
	}
	line("models", "%s", strings.Join(v.Models, ", "))
	for i := range v.Families {
		if f := &v.Families[i]; len(f.Types) > 0 {
			line("types", "%s: %s", f.Name, gemm.TypesText(f.Types))
		}
	}
	limits := fmt.Sprintf("%s B of shared memory per CTA", table.SixDigits(float64(v.SharedMemory)))
	if v.RegisterFile > 0 {
		limits += fmt.Sprintf(", %d registers per %s, at most %d per thread", v.RegisterFile, v.UnitName,
			v.RegistersPerThread)
	}
	line("limits", "%s", limits)
	for i, p := range v.Peak {
		label := ""
		if i == 0 {
			label = "peak"
		}
		line(label, "%-5s %s", p.DType, table.Rate(p.Rate, p.DType))
	}
}

// tables writes tables with titles.
type tables struct{ s *iostreams.Streams }

func (t tables) write(title string, header []string, rows [][]string) {
	t.s.Printf("\n%s\n", t.s.Bold(title))
	table.WriteTable(t.s, header, rows)
}

func (t tables) writeIfAny(title string, header []string, rows [][]string) {
	if len(rows) > 0 {
		t.write(title, header, rows)
	}
}

// writeAxes writes what the configurations of the kernel families have beyond the numbers that all have.
func (t tables) writeAxes(families []arch.Family) {
	var rows [][]string
	for _, f := range families {
		for _, x := range f.Axes {
			values := strings.Join(x.Values, ", ")
			if values == "" {
				values = fmt.Sprintf("0 to %d", gemm.MaxConfigNumber)
			}
			rows = append(rows, []string{f.Name, x.Name, values, x.Default, x.Unit, x.Doc})
		}
	}
	t.writeIfAny("Axes of kernel families", []string{"kernel", "axis", "values", "default", "unit", "what"}, rows)
}

// fraction says how a level's bandwidth depends on the number of active units, as a formula over a.
func fraction(b arch.Bandwidth) string {
	if b.Linear {
		return fmt.Sprintf("a/%d", b.Units)
	}
	var parts []string
	for _, p := range []struct {
		value float64
		power string
	}{{b.C0, "*a*a"}, {b.C1, "*a"}, {b.C2, ""}} {
		if p.value != 0 {
			parts = append(parts, table.Exact(p.value)+p.power)
		}
	}
	if len(parts) == 0 {
		parts = []string{"0"}
	}
	return "min(" + strings.Join(parts, " + ") + ", 1)"
}
