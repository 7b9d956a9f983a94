package catalogcmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// shown is what `arch show` shows.
type shown struct {
	Arch       string          `json:"arch"` // as in `arch ls`
	Device     string          `json:"device"`
	Name       string          `json:"name"`
	Vendor     string          `json:"vendor"`
	Aliases    []string        `json:"aliases"`
	Plugin     string          `json:"plugin"`
	Model      string          `json:"model"` // as in `select`
	Class      arch.ModelClass `json:"model_class,omitempty"`
	Models     []string        `json:"models"`          // the models of the architecture, the default first
	Kernels    []string        `json:"kernels"`         // the kernel families of the model, the default first
	Axes       []axis          `json:"axes,omitempty"`  // what configurations of kernel families have besides
	Types      []types         `json:"types,omitempty"` // what kernel families have kernels for, if the model states it
	Rung       arch.Rung       `json:"rung"`            // as in `select`
	RungReason string          `json:"rung_reason,omitempty"`
	RanksOnly  bool            `json:"ranks_only,omitempty"`
	Live       *ask.Live       `json:"live,omitempty"`
	UnitName   string          `json:"unit_name"` // what the vendor calls a compute unit, and how many there are
	Units      int             `json:"units"`
	Partitions int             `json:"partitions"` // the dies
	Clock      unit.Hertz      `json:"clock_hz"`   // the clock of the model's cycles, and its rung
	ClockRung  arch.Rung       `json:"clock_rung"`
	Shared     unit.Bytes      `json:"shared_memory_bytes"` // what one CTA (workgroup) may use
	Registers  int             `json:"register_file"`       // 32-bit registers of a unit, and the most of a thread
	PerThread  int             `json:"registers_per_thread"`
	Peak       []arch.PeakRate `json:"peak"`       // the dense rates of the data sheet
	Atoms      []arch.Atom     `json:"atoms"`      // the matrix instructions that the model uses
	Levels     []level         `json:"levels"`     // the memory levels, near to far
	Parameters []ask.Parameter `json:"parameters"` // the hardware numbers, as in `explain`
	Constants  []arch.Constant `json:"constants"`  // the numbers of the model
	Options    []option        `json:"options"`    // the options in force, for `--option key=value`
	Terms      []arch.Term     `json:"terms"`      // what a prediction consists of
	// the dimensions along which a larger problem is never predicted to take less time
	Monotone    []string           `json:"monotone,omitempty"`
	Uncertainty []arch.Uncertainty `json:"uncertainty,omitempty"` // how far times are off, as in `eval --intervals`
	Fitted      []fitted           `json:"fitted,omitempty"`      // the data sets that the model was fitted to
}

// axis is a named axis of configurations.
type axis struct {
	Kernel  string   `json:"kernel"` // the kernel family
	Name    string   `json:"name"`   // its name
	Type    string   `json:"type"`   // `enumeration` or `integer`
	Values  []string `json:"values"` // empty for all integers
	Default string   `json:"default"`
	Unit    string   `json:"unit,omitempty"`
	Doc     string   `json:"doc"` // what it means
}

// types are element types that a family has kernels for.
type types struct {
	Kernel   string     `json:"kernel"`   // the kernel family
	Operands gemm.DType `json:"operands"` // of A and B
	Results  gemm.DType `json:"results"`  // of C
}

// level is a level of memory.
type level struct {
	Name       string      `json:"name"`                                // its name
	Capacity   unit.Bytes  `json:"capacity_bytes"`                      // 0 for the last one, which holds everything
	Partitions int         `json:"partitions"`                          // separate caches
	Latency    unit.Cycles `json:"latency_cycles" unit:"cycles"`        // of a transfer
	Peak       float64     `json:"peak_bytes_per_cycle" unit:"B/cycle"` // what all units reach at most
	Fraction   string      `json:"fraction"`                            // of the peak, for `a` active units
	Bound      string      `json:"bound"`                               // what a kernel that waits for it is limited by
}

// option is an option of the model.
type option struct {
	Key   string `json:"key"`   // its name
	Value string `json:"value"` // the value in force
	Doc   string `json:"doc"`   // what it means
}

// fitted is a data set that the model was fitted to.
type fitted struct {
	DataSet  string        `json:"data_set"`         // its name
	Kernel   string        `json:"kernel,omitempty"` // the kernel family, absent for all
	Problems []gemm.Record `json:"problems"`         // empty where they are too many to list
}

func newShown(d *arch.Description, levels []arch.Level, docs map[string]string) *shown {
	v := &shown{Arch: d.Arch, Device: d.Device, Name: d.DeviceName, Vendor: d.Vendor, Aliases: list(d.Aliases),
		Model: d.Model, Class: d.ModelClass, Models: d.Models, Kernels: d.Kernels, Rung: d.Rung, RungReason: d.RungReason,
		RanksOnly: d.RanksOnly, Live: ask.LiveOf(d), UnitName: d.UnitName, Units: d.Units, Partitions: d.Partitions,
		Clock: d.Clock, ClockRung: d.ClockRung, Shared: d.SharedMemory, Registers: d.RegisterFile,
		PerThread: d.RegistersPerThread, Peak: list(d.Peak), Atoms: list(d.Atoms), Levels: []level{},
		Parameters: ask.Parameters(d), Constants: list(d.Constants), Options: []option{}, Terms: list(d.Terms)}
	for i := range d.Families {
		f := &d.Families[i]
		for _, x := range f.Axes {
			v.Axes = append(v.Axes, axis{f.Name, x.Name, x.Type.String(), list(x.Values), x.Default, x.Unit, x.Doc})
		}
		for _, t := range f.Types {
			v.Types = append(v.Types, types{f.Name, t.In, t.Out})
		}
	}
	for _, l := range levels {
		v.Levels = append(v.Levels, level{l.Name, l.Capacity, l.Partitions, l.Latency, float64(l.Bandwidth.Peak),
			fraction(l.Bandwidth), l.Bound.String()})
	}
	for _, o := range d.Options {
		v.Options = append(v.Options, option{o.Key, o.Value, docs[o.Key]})
	}
	for _, dim := range d.Monotone {
		v.Monotone = append(v.Monotone, dim.String())
	}
	for i := range d.Uncertainty {
		v.Uncertainty = append(v.Uncertainty, d.Uncertainty[i])
		v.Uncertainty[i].Evidence = d.EvidenceOf(&d.Uncertainty[i])
	}
	for _, f := range d.Fitted {
		one := fitted{f.DataSet, f.Kernel, []gemm.Record{}}
		for _, p := range f.Problems {
			one.Problems = append(one.Problems, p.Record())
		}
		v.Fitted = append(v.Fitted, one)
	}
	return v
}

// list is a list that is [] in JSON if it is empty.
func list[T any](of []T) []T { return append([]T{}, of...) }

// card writes what people see above the hardware numbers.
func (v *shown) card(s *iostreams.Streams, d *arch.Description) {
	line := func(label, format string, args ...any) { show.Line(s, label, format, args...) }
	show.Lines(s, append(show.DeviceLines(d), show.ModelLine(d, strings.Join(v.Kernels, ", ")))...)
	line("vendor", "%s, plugin %s", v.Vendor, v.Plugin)
	if len(v.Aliases) > 0 {
		line("aliases", "%s", strings.Join(v.Aliases, ", "))
	}
	line("models", "%s", strings.Join(v.Models, ", "))
	for i := range d.Families {
		if f := &d.Families[i]; len(f.Types) > 0 {
			line("types", "%s: %s", f.Name, gemm.TypesText(f.Types))
		}
	}
	limits := fmt.Sprintf("%s B of shared memory per CTA", digits.SixDigits(float64(v.Shared)))
	if v.Registers > 0 {
		limits += fmt.Sprintf(", %d registers per %s, at most %d per thread", v.Registers, v.UnitName, v.PerThread)
	}
	line("limits", "%s", limits)
	label := "peak"
	for _, p := range v.Peak {
		line(label, "%-5s %s", p.DType, digits.Rate(p.Rate, p.DType))
		label = ""
	}
}

// write writes what `arch show` shows. CSV has the hardware numbers.
func (v *shown) write(s *iostreams.Streams, f show.Format, d *arch.Description) error {
	switch f {
	case show.JSON:
		return show.JSONLine(s, v)
	case show.CSV:
		return show.Write(s, f, v.Parameters)
	case show.Table:
	}
	v.card(s, d)
	section(s, "Hardware numbers", v.Parameters, show.Key[ask.Parameter]("name"),
		show.Text("value", func(p *ask.Parameter) string { return digits.Parameter(float64(p.Value), p.Unit) }),
		show.Key[ask.Parameter]("tier"), show.Key[ask.Parameter]("method"), show.Key[ask.Parameter]("date"),
		show.Text("source", func(p *ask.Parameter) string {
			return show.SourceOf(d, &hw.Param{Name: p.Name, Number: hw.Number{Source: p.Source}})
		}))
	v.model(s)
	for i := range v.Uncertainty {
		u := &v.Uncertainty[i]
		section(s, fmt.Sprintf("Measured ÷ predicted time of %s, %s intervals", u.Kernel, digits.Level(u.Level)), u.Ranges,
			show.Ranges()...)
		show.Lines(s, show.UncertaintyLines(u)...)
	}
	return nil
}

// section writes a table with a title, if it has rows.
func section[T any](s *iostreams.Streams, title string, rows []T, columns ...show.Column[T]) {
	if len(rows) > 0 {
		s.Printf("\n%s\n", s.Bold(title))
		_ = show.Write(s, show.Table, rows, columns...) // an error of the screen shows when it is flushed
	}
}

// model writes the tables of the model.
func (v *shown) model(s *iostreams.Streams) {
	section(s, "Matrix instructions", v.Atoms, show.Key[arch.Atom]("dtype"),
		show.Text("shape", func(a *arch.Atom) string { return fmt.Sprintf("%dx%dx%d", a.M, a.N, a.K) }),
		show.Key[arch.Atom]("latency_cycles", "cycles"), show.Key[arch.Atom]("per_unit", "per "+v.UnitName))
	section(s, "Memory levels, near to far", v.Levels, show.Key[level]("name", "level"),
		show.Text("bytes", func(l *level) string {
			if l.Capacity > 0 {
				return digits.SixDigits(float64(l.Capacity))
			}
			return "all"
		}),
		show.Key[level]("partitions"), show.Key[level]("latency_cycles", "latency (cycles)"),
		show.Text("peak (B/cycle)", func(l *level) string { return digits.SixDigits(l.Peak) }),
		show.Key[level]("fraction", "share of peak, a = active "+v.UnitName+"s"))
	section(s, "Constants of the model", v.Constants, show.Key[arch.Constant]("name"),
		show.Text("value", func(c *arch.Constant) string { return digits.Quantity(c.Value, c.Unit) }),
		show.Key[arch.Constant]("doc", "what"), show.Key[arch.Constant]("source"))
	section(s, "Fitted to", v.Fitted, show.Key[fitted]("data_set", "data set"), show.Key[fitted]("kernel").Or("all"),
		show.Text("problems", func(f *fitted) string {
			if len(f.Problems) == 0 {
				return "not listed"
			}
			return strconv.Itoa(len(f.Problems))
		}))
	section(s, "Axes of kernel families", v.Axes, show.Key[axis]("kernel"), show.Key[axis]("name", "axis"),
		show.Key[axis]("values").Or(fmt.Sprintf("0 to %d", gemm.MaxConfigNumber)), show.Key[axis]("default"),
		show.Key[axis]("unit"), show.Key[axis]("doc", "what"))
	section(s, "Options (--option key=value)", v.Options, show.Key[option]("key"), show.Key[option]("value"),
		show.Key[option]("doc", "what"))
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
