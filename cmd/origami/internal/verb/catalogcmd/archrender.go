package catalogcmd

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// view is what `arch show` shows.
type view struct {
	*arch.Description
	Levels     []arch.Level
	OptionDocs map[string]string
	Plugin     string
}

// object are the keys of `arch show --json`.
var object = table.Columns[view]{
	table.Col("arch", func(v *view) string { return v.Arch }),
	table.Col("device", func(v *view) string { return v.Device }),
	table.Col("name", func(v *view) string { return v.DeviceName }),
	table.Col("vendor", func(v *view) string { return v.Vendor }),
	table.Col("aliases", func(v *view) []string { return append([]string{}, v.Aliases...) }),
	table.Col("plugin", func(v *view) string { return v.Plugin }),
	table.Col("model", func(v *view) string { return v.Model }),
	table.Col("model_class", func(v *view) arch.ModelClass { return v.ModelClass }).Omit(),
	table.Col("models", func(v *view) []string { return v.Models }),
	table.Col("kernels", func(v *view) []string { return v.Kernels }),
	table.Col("axes", func(v *view) []ask.Object { return axes.Objects(of(v, familyAxes)) }).Omit(),
	table.Col("types", func(v *view) []ask.Object { return types.Objects(of(v, familyTypes)) }).Omit(),
	table.Col("rung", func(v *view) arch.Rung { return v.Rung }),
	table.Col("rung_reason", func(v *view) string { return v.RungReason }).Omit(),
	table.Col("ranks_only", func(v *view) bool { return v.RanksOnly }).Omit(),
	table.Col("live", func(v *view) *ask.Live { return ask.LiveOf(v.Description) }).Omit(),
	table.Col("unit_name", func(v *view) string { return v.UnitName }),
	table.Col("units", func(v *view) int { return v.Units }),
	table.Col("partitions", func(v *view) int { return v.Partitions }),
	table.Col("clock_hz", func(v *view) unit.Hertz { return v.Clock }),
	table.Col("clock_rung", func(v *view) arch.Rung { return v.ClockRung }),
	table.Col("shared_memory_bytes", func(v *view) unit.Bytes { return v.SharedMemory }),
	table.Col("register_file", func(v *view) int { return v.RegisterFile }),
	table.Col("registers_per_thread", func(v *view) int { return v.RegistersPerThread }),
	table.Col("peak", func(v *view) []ask.Object { return peaks.Objects(v.Peak) }),
	table.Col("atoms", func(v *view) []ask.Object { return v.atoms().Objects(v.Atoms) }),
	table.Col("levels", func(v *view) []ask.Object { return v.levels().Objects(v.Levels) }),
	table.Col("parameters", func(v *view) []ask.Object { return v.parameters().Objects(v.Params) }),
	table.Col("constants", func(v *view) []ask.Object { return constants.Objects(v.Constants) }),
	table.Col("options", func(v *view) []ask.Object { return v.options().Objects(v.Options) }),
	table.Col("terms", func(v *view) []ask.Object { return terms.Objects(v.Terms) }),
	table.Col("monotone", func(v *view) []string {
		var names []string
		for _, dim := range v.Monotone {
			names = append(names, dim.String())
		}
		return names
	}).Omit(),
	table.Col("uncertainty", func(v *view) []arch.UncertaintyRecord {
		var records []arch.UncertaintyRecord
		for i := range v.Uncertainty {
			record := v.Uncertainty[i].Record()
			record.Evidence = v.EvidenceOf(&v.Uncertainty[i])
			records = append(records, record)
		}
		return records
	}).Omit(),
	table.Col("fitted", func(v *view) []ask.Object { return fitted.Objects(v.Fitted) }).Omit(),
}

// ofFamily is something that a kernel family has.
type ofFamily[T any] struct {
	kernel string
	it     T
}

func of[T any](v *view, list func(*arch.Family) []T) (all []ofFamily[T]) {
	for i := range v.Families {
		for _, x := range list(&v.Families[i]) {
			all = append(all, ofFamily[T]{v.Families[i].Name, x})
		}
	}
	return all
}

func familyAxes(f *arch.Family) []gemm.Axis   { return f.Axes }
func familyTypes(f *arch.Family) []gemm.Types { return f.Types }

// axes are what configurations have beyond the numbers that all have.
var axes = table.Columns[ofFamily[gemm.Axis]]{
	table.Col("kernel", func(x *ofFamily[gemm.Axis]) string { return x.kernel }),
	table.Col("name|-|axis", func(x *ofFamily[gemm.Axis]) string { return x.it.Name }),
	table.Col("type|-", func(x *ofFamily[gemm.Axis]) string { return x.it.Type.String() }),
	table.Col("values", func(x *ofFamily[gemm.Axis]) []string { return append([]string{}, x.it.Values...) },
		func(values []string) string {
			return cmp.Or(strings.Join(values, ", "), fmt.Sprintf("0 to %d", gemm.MaxConfigNumber))
		}),
	table.Col("default", func(x *ofFamily[gemm.Axis]) string { return x.it.Default }),
	table.Col("unit", func(x *ofFamily[gemm.Axis]) string { return x.it.Unit }).Omit(),
	table.Col("doc|-|what", func(x *ofFamily[gemm.Axis]) string { return x.it.Doc }),
}

var types = table.Columns[ofFamily[gemm.Types]]{
	table.Col("kernel", func(x *ofFamily[gemm.Types]) string { return x.kernel }),
	table.Col("operands", func(x *ofFamily[gemm.Types]) string { return x.it.In.String() }),
	table.Col("results", func(x *ofFamily[gemm.Types]) string { return x.it.Out.String() }),
}

var peaks = table.Columns[arch.PeakRate]{
	table.Col("dtype", func(p *arch.PeakRate) string { return p.DType.String() }),
	table.Col("flops_per_second", func(p *arch.PeakRate) unit.FlopsPerSecond { return p.Rate }),
}

func (v *view) atoms() table.Columns[arch.Atom] {
	return table.Columns[arch.Atom]{
		table.Col("dtype", func(a *arch.Atom) string { return a.DType.String() }),
		table.Text("shape", func(a *arch.Atom) string { return fmt.Sprintf("%dx%dx%d", a.M, a.N, a.K) }),
		table.Col("m|-", func(a *arch.Atom) int { return a.M }),
		table.Col("n|-", func(a *arch.Atom) int { return a.N }),
		table.Col("k|-", func(a *arch.Atom) int { return a.K }),
		table.Col("latency_cycles|-|cycles", func(a *arch.Atom) float64 { return float64(a.Latency) }, digits.SixDigits),
		table.Col("per_unit|-|per "+v.UnitName, func(a *arch.Atom) int { return a.PerUnit }),
	}
}

func (v *view) levels() table.Columns[arch.Level] {
	return table.Columns[arch.Level]{
		table.Col("name|-|level", func(l *arch.Level) string { return l.Name }),
		table.Col("capacity_bytes|-|bytes", func(l *arch.Level) float64 { return float64(l.Capacity) },
			func(capacity float64) string {
				if capacity > 0 {
					return digits.SixDigits(capacity)
				}
				return "-"
			}),
		table.Col("partitions", func(l *arch.Level) int { return l.Partitions }),
		table.Col("latency_cycles|-|latency (cycles)", func(l *arch.Level) float64 { return float64(l.Latency) },
			digits.SixDigits),
		table.Col("peak_bytes_per_cycle|-|peak (B/cycle)", func(l *arch.Level) float64 { return float64(l.Bandwidth.Peak) },
			digits.SixDigits),
		table.Col("reached_bytes_per_cycle|-|reached (B/cycle)", func(l *arch.Level) float64 { return float64(l.Rate()) },
			digits.SixDigits),
		table.Col("fraction|-|share of peak, a = active "+v.UnitName+"s", func(l *arch.Level) string {
			return fraction(l.Bandwidth)
		}),
		table.Col("bound|-", func(l *arch.Level) string { return l.Bound.String() }),
	}
}

// parameters are the columns of the hardware numbers, which CSV and TSV have alone.
func (v *view) parameters() table.Columns[hw.Param] {
	return table.Columns[hw.Param]{
		table.Const[hw.Param]("-|arch|-", v.Arch), table.Const[hw.Param]("-|device|-", v.Device),
		table.Col("name", func(p *hw.Param) string { return p.Name }),
		table.Col("value||-", func(p *hw.Param) float64 { return p.Value }),
		table.Text("value", func(p *hw.Param) string { return digits.Parameter(p.Value, p.Unit) }),
		table.Col("unit||-", func(p *hw.Param) string { return p.Unit }),
		table.Col("tier", func(p *hw.Param) string { return p.Tier.String() }),
		table.Col("method", func(p *hw.Param) string { return string(p.Method) }),
		table.Col("source||-", func(p *hw.Param) string { return p.Source }),
		table.Col("date", func(p *hw.Param) string { return p.Date }).Omit(),
		table.Text("source", func(p *hw.Param) string { return table.SourceOf(v.Description, p) }),
		table.Col("used||-", func(p *hw.Param) *bool { return ask.InUse(v.Description, p.Name) }).Omit().
			CSV(func(p *hw.Param) string {
				if v.Ignores(p.Name) {
					return "false"
				}
				return ""
			}),
	}
}

var constants = table.Columns[arch.Constant]{
	table.Col("name", func(c *arch.Constant) string { return c.Name }),
	table.Col("value|-", func(c *arch.Constant) float64 { return c.Value }),
	table.Text("value", func(c *arch.Constant) string { return digits.Quantity(c.Value, c.Unit) }),
	table.Col("unit|-", func(c *arch.Constant) string { return c.Unit }),
	table.Col("doc|-|what", func(c *arch.Constant) string { return c.Doc }),
	table.Col("source", func(c *arch.Constant) string { return c.Source }),
}

func (v *view) options() table.Columns[arch.OptionValue] {
	return table.Columns[arch.OptionValue]{
		table.Col("key", func(o *arch.OptionValue) string { return o.Key }),
		table.Col("value", func(o *arch.OptionValue) string { return o.Value }),
		table.Col("doc|-|what", func(o *arch.OptionValue) string { return v.OptionDocs[o.Key] }),
	}
}

var terms = table.Columns[arch.Term]{
	table.Col("name", func(t *arch.Term) string { return t.Name }),
	table.Col("unit", func(t *arch.Term) string { return t.Unit }),
	table.Col("kind", func(t *arch.Term) string { return t.Kind.String() }),
	table.Col("formula", func(t *arch.Term) string { return t.Formula }),
	table.Col("doc", func(t *arch.Term) string { return t.Doc }),
	table.Col("source", func(t *arch.Term) string { return t.Source }),
	table.Col("common", func(t *arch.Term) string { return t.Common }).Omit(),
}

func write(s *iostreams.Streams, f table.Format, v *view) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, object.Object(v))
	case table.CSV, table.TSV:
		return v.parameters().Write(s, f, v.Params)
	case table.Table:
	}
	writeCard(s, v)
	section(s, "Hardware numbers", v.parameters(), v.Params)
	section(s, "Matrix instructions", v.atoms(), v.Atoms)
	section(s, "Memory levels, near to far", v.levels(), v.Levels)
	section(s, "Constants of the model", constants, v.Constants)
	for i := range v.Uncertainty {
		writeUncertainty(s, &v.Uncertainty[i], v.EvidenceOf(&v.Uncertainty[i]))
	}
	section(s, "Fitted to", fitted, v.Fitted)
	section(s, "Axes of kernel families", axes, of(v, familyAxes))
	section(s, "Options (--option key=value)", v.options(), v.Options)
	return nil
}

// section writes a table with a title, if it has rows.
func section[T any](s *iostreams.Streams, title string, c table.Columns[T], rows []T) {
	if len(rows) > 0 {
		s.Printf("\n%s\n", s.Bold(title))
		_ = c.Write(s, table.Table, rows) // an error of the screen shows when it is flushed
	}
}

// writeCard writes the lines above the tables.
func writeCard(s *iostreams.Streams, v *view) {
	line := func(label, format string, args ...any) { table.Line(s, label, format, args...) }
	table.Lines(s, append(table.DeviceLines(v.Description),
		table.ModelLine(v.Description, strings.Join(v.Kernels, ", ")))...)
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
	limits := fmt.Sprintf("%s B of shared memory per CTA", digits.SixDigits(float64(v.SharedMemory)))
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
		line(label, "%-5s %s", p.DType, digits.Rate(p.Rate, p.DType))
	}
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
			parts = append(parts, digits.Exact(p.value)+p.power)
		}
	}
	if len(parts) == 0 {
		parts = []string{"0"}
	}
	return "min(" + strings.Join(parts, " + ") + ", 1)"
}
