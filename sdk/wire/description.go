package wire

import (
	"errors"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toDescription(d *arch.Description) *pb.Description {
	q := &pb.Description{
		Arch: d.Arch, Vendor: d.Vendor, Device: d.Device, DeviceName: d.DeviceName, Aliases: d.Aliases,
		Model: d.Model, Models: d.Models, Kernels: d.Kernels, Rung: toRung(d.Rung), RungReason: d.RungReason,
		RanksOnly: d.RanksOnly,
		UnitName:  d.UnitName, Units: int64(d.Units), Partitions: int64(d.Partitions),
		ClockHz: float64(d.Clock), ClockRung: toRung(d.ClockRung),
		SharedMemoryBytes: float64(d.SharedMemory), RegisterFile: int64(d.RegisterFile),
		RegistersPerThread: int64(d.RegistersPerThread),
		Order:              &pb.Order{Window: d.Order.Window},
	}
	if d.ModelClass != "" {
		q.Model, q.ModelName, q.ModelNames = string(d.ModelClass), d.Model, d.Models
	}
	for _, p := range d.Peak {
		q.Peaks = append(q.Peaks, &pb.PeakRate{ElementType: pb.ElementType(p.DType), FlopsPerSecond: float64(p.Rate)})
	}
	for _, a := range d.Atoms {
		q.Atoms = append(q.Atoms, &pb.Atom{
			ElementType: pb.ElementType(a.DType), M: int64(a.M), N: int64(a.N), K: int64(a.K),
			LatencyCycles: float64(a.Latency), PerUnit: int64(a.PerUnit),
		})
	}
	for _, c := range d.Ceilings {
		q.Ceilings = append(q.Ceilings, &pb.Ceiling{
			Name: c.Name, Place: pb.Place(c.Level) + pb.Place_PLACE_COMPUTE, ElementType: pb.ElementType(c.DType),
			Limit: c.Limit, Reached: c.Reached, Source: c.Source,
		})
	}
	for _, p := range d.Params {
		q.Params = append(q.Params, toParam(p))
	}
	q.Unused = d.Unused
	for _, c := range d.Constants {
		q.Constants = append(q.Constants, &pb.Constant{Name: c.Name, Value: c.Value, Unit: c.Unit, Doc: c.Doc,
			Source: c.Source, Low: c.Low, High: c.High})
	}
	for _, t := range d.Terms {
		q.Terms = append(q.Terms, &pb.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.Formula, Doc: t.Doc, Source: t.Source, Kind: pb.TermKind(t.Kind) +
				pb.TermKind_TERM_KIND_INTERMEDIATE,
			Common: t.Common,
		})
	}
	for _, k := range d.Order.Keys {
		q.Order.Keys = append(q.Order.Keys, pb.Key(k))
	}
	for _, o := range d.Options {
		q.Options = append(q.Options, &pb.OptionValue{Key: o.Key, Value: o.Value})
	}
	for _, u := range d.Uncertainty {
		q.Uncertainty = append(q.Uncertainty, toUncertainty(&u))
	}
	for _, f := range d.Fitted {
		own := &pb.Fitted{DataSet: f.DataSet, Kernel: f.Kernel}
		for _, p := range f.Problems {
			own.Problems = append(own.Problems, toProblem(p))
		}
		q.Fitted = append(q.Fitted, own)
	}
	for _, dim := range d.Monotone {
		q.Monotone = append(q.Monotone, pb.Dim(dim))
	}
	for _, f := range d.Families {
		q.Families = append(q.Families, toFamily(f))
	}
	return q
}

// beforeAPI13 drops the rates and instructions of element types that a host of an earlier API refuses.
func beforeAPI13(q *pb.Description) {
	q.Peaks = slices.DeleteFunc(q.Peaks, func(p *pb.PeakRate) bool {
		return p.ElementType > pb.ElementType_ELEMENT_TYPE_INT8
	})
	q.Atoms = slices.DeleteFunc(q.Atoms, func(a *pb.Atom) bool {
		return a.ElementType > pb.ElementType_ELEMENT_TYPE_INT8
	})
}

func fromDescription(q *pb.Description) (*arch.Description, error) {
	if q == nil {
		return nil, errors.New("no description")
	}
	var c check
	d := &arch.Description{
		Arch: c.named("arch", q.Arch), Vendor: q.Vendor, Device: c.named("device", q.Device), DeviceName: q.DeviceName,
		Aliases: q.Aliases,
		Model:   c.named("model", q.Model), Models: q.Models, Kernels: q.Kernels, Rung: c.rung(q.Rung),
		RungReason: q.RungReason, RanksOnly: q.RanksOnly,
		UnitName: q.UnitName, Units: c.count("units", q.Units), Partitions: c.count("partitions", q.Partitions),
		Clock: unit.Hertz(c.positive("clock", q.ClockHz)), ClockRung: c.rung(q.ClockRung),
		SharedMemory: unit.Bytes(c.amount("shared memory", q.SharedMemoryBytes)),
		RegisterFile: c.count("register file", q.RegisterFile), RegistersPerThread: c.count("registers per thread",
			q.RegistersPerThread),
		Order: arch.Order{Window: c.finite("order window", q.GetOrder().GetWindow())},
	}
	if q.ModelName != "" {
		d.Model, d.ModelClass, d.Models = q.ModelName, arch.ModelClass(q.Model), q.ModelNames
	}
	if len(d.Kernels) == 0 {
		c.fail("a description without kernels")
	}
	for _, p := range q.Peaks {
		d.Peak = append(d.Peak, arch.PeakRate{DType: c.elementType(p.GetElementType()),
			Rate: unit.FlopsPerSecond(c.amount("peak rate", p.GetFlopsPerSecond()))})
	}
	for _, a := range q.Atoms {
		d.Atoms = append(d.Atoms, arch.Atom{
			DType: c.elementType(a.GetElementType()), M: c.count("atom m", a.GetM()), N: c.count("atom n", a.GetN()),
			K:       c.count("atom k", a.GetK()),
			Latency: unit.Cycles(c.finite("atom latency", a.GetLatencyCycles())), PerUnit: c.count("atoms per unit",
				a.GetPerUnit()),
		})
	}
	for _, x := range q.Ceilings {
		d.Ceilings = append(d.Ceilings, c.ceiling(x))
	}
	for _, p := range q.Params {
		d.Params = append(d.Params, c.param(p))
	}
	for _, name := range q.Unused {
		if _, ok := hw.Set(d.Params).Lookup(name); !ok {
			c.fail("the unused parameter %q is not among the parameters", name)
		}
	}
	d.Unused = q.Unused
	for _, k := range q.Constants {
		own := arch.Constant{
			Name: k.GetName(), Value: c.finite(k.GetName(), k.GetValue()), Unit: k.GetUnit(), Doc: k.GetDoc(),
			Source: k.GetSource(), Low: k.GetLow(), High: c.finite("a bound of "+k.GetName(), k.GetHigh()),
		}
		if (own.Low != 0 || own.High != 0) && !own.Fits() {
			c.fail("%s is %v, and is fitted between %v and %v", own.Name, own.Value, own.Low, own.High)
		}
		d.Constants = append(d.Constants, own)
	}
	for _, t := range q.Terms {
		d.Terms = append(d.Terms, c.term(t))
	}
	for _, k := range q.GetOrder().GetKeys() {
		if k < pb.Key_KEY_INTENSITY || k > pb.Key_KEY_LARGE_TILE {
			c.fail("unknown order key %d", k)
		}
		d.Order.Keys = append(d.Order.Keys, arch.Key(k))
	}
	for _, o := range q.Options {
		d.Options = append(d.Options, arch.OptionValue{Key: o.GetKey(), Value: o.GetValue()})
	}
	for _, u := range q.Uncertainty {
		d.Uncertainty = append(d.Uncertainty, c.uncertainty(u))
	}
	for _, f := range q.Fitted {
		d.Fitted = append(d.Fitted, c.fitted(f))
	}
	for _, dim := range q.Monotone {
		if dim < pb.Dim_DIM_M || dim > pb.Dim_DIM_NONE {
			c.fail("unknown dimension %d", dim)
		}
		d.Monotone = append(d.Monotone, arch.Dim(dim))
	}
	for _, f := range q.Families {
		d.Families = append(d.Families, c.family(f))
	}
	if err := d.CheckFamilies(); err != nil {
		c.fail("%v", err)
	}
	return d, c.err
}

func toParam(p hw.Param) *pb.Param {
	return &pb.Param{
		Name: p.Name, Value: p.Value, Unit: p.Unit, Source: p.Source, Method: string(p.Method), Date: p.Date,
		Tier: pb.Tier(p.Tier), ClockHz: float64(p.Clock), Spread: p.Spread,
	}
}

func (c *check) param(p *pb.Param) hw.Param {
	if p.GetTier() < pb.Tier_TIER_DERIVED || p.GetTier() > pb.Tier_TIER_OVERRIDE {
		c.fail("%s has the unknown tier %d", p.GetName(), p.GetTier())
	}
	return hw.Param{Name: p.GetName(), Tier: hw.Tier(p.GetTier()), Number: hw.Number{
		Value: c.finite(p.GetName(), p.GetValue()), Unit: p.GetUnit(), Source: p.GetSource(),
		Method: hw.Method(p.GetMethod()), Date: p.GetDate(),
		Clock: unit.Hertz(c.amount("a clock", p.GetClockHz())), Spread: c.amount("a spread", p.GetSpread()),
	}}
}

func (c *check) ceiling(q *pb.Ceiling) arch.Ceiling {
	if q.GetPlace() < pb.Place_PLACE_COMPUTE || q.GetPlace() > pb.Place_PLACE_DRAM {
		c.fail("the ceiling %s is at the unknown place %d", q.GetName(), q.GetPlace())
	}
	x := arch.Ceiling{
		Name: c.named("ceiling", q.GetName()), Level: arch.Place(q.GetPlace() - pb.Place_PLACE_COMPUTE),
		Limit: c.amount("a limit", q.GetLimit()), Reached: c.amount("a rate that was reached", q.GetReached()),
		Source: q.GetSource(),
	}
	if x.Level == arch.AtCompute {
		x.DType = c.elementType(q.GetElementType())
	}
	return x
}

func (c *check) term(t *pb.Term) arch.Term {
	if t.GetKind() < pb.TermKind_TERM_KIND_INTERMEDIATE || t.GetKind() > pb.TermKind_TERM_KIND_TOTAL {
		c.fail("term %s has the unknown kind %d", t.GetName(), t.GetKind())
	}
	return arch.Term{
		Name: c.named("term", t.GetName()), Unit: t.GetUnit(), Formula: t.GetFormula(), Doc: t.GetDoc(),
		Source: t.GetSource(), Kind: arch.TermKind(t.GetKind() - pb.TermKind_TERM_KIND_INTERMEDIATE), Common: t.GetCommon(),
	}
}

func toFamily(f arch.Family) *pb.Family {
	q := &pb.Family{Name: f.Name, Doc: f.Doc, Groups: f.Groups, Opaque: f.Opaque,
		Nests: f.Nests}
	for _, t := range f.Types {
		q.Types = append(q.Types, toTypes(t))
	}
	for _, x := range f.Axes {
		q.Axes = append(q.Axes, &pb.Axis{
			Name: x.Name, Unit: x.Unit, Doc: x.Doc, Type: pb.AxisType(x.Type), Values: x.Values, DefaultValue: x.Default,
		})
	}
	return q
}

func (c *check) family(q *pb.Family) arch.Family {
	f := arch.Family{
		Name: c.named("kernel family", q.GetName()), Doc: q.GetDoc(), Groups: q.GetGroups(), Opaque: q.GetOpaque(),
		Nests: q.GetNests(),
	}
	for _, t := range q.GetTypes() {
		f.Types = append(f.Types, c.types(f.Name, t))
	}
	for _, x := range q.GetAxes() {
		if x.GetType() < pb.AxisType_AXIS_TYPE_ENUMERATION || x.GetType() > pb.AxisType_AXIS_TYPE_INTEGER {
			c.fail("the axis %q has the unknown type %d", x.GetName(), x.GetType())
		}
		f.Axes = append(f.Axes, gemm.Axis{
			Name: x.GetName(), Unit: x.GetUnit(), Doc: x.GetDoc(), Type: gemm.AxisType(x.GetType()), Values: x.GetValues(),
			Default: x.GetDefaultValue(),
		})
	}
	return f
}

func toTypes(t gemm.Types) *pb.Types {
	return &pb.Types{Operands: pb.ElementType(t.In), Results: pb.ElementType(t.Out)}
}

// types are the element types of a kernel family.
func (c *check) types(family string, q *pb.Types) gemm.Types {
	t := gemm.Types{In: c.elementType(q.GetOperands()), Out: c.elementType(q.GetResults())}
	if !t.Valid() {
		c.fail("the kernel family %s multiplies %s operands into %s results", family, t.In, t.Out)
	}
	return t
}

func toLevels(levels []arch.Level) []*pb.Level {
	out := make([]*pb.Level, len(levels))
	for i, l := range levels {
		out[i] = &pb.Level{
			Name: l.Name, CapacityBytes: float64(l.Capacity), LatencyCycles: float64(l.Latency), Partitions: int64(l.Partitions),
			Bound: pb.Bound(l.Bound),
			Bandwidth: &pb.Bandwidth{
				PeakBytesPerCycle: float64(l.Bandwidth.Peak), Units: int64(l.Bandwidth.Units), Linear: l.Bandwidth.Linear,
				C0: l.Bandwidth.C0, C1: l.Bandwidth.C1, C2: l.Bandwidth.C2,
			},
		}
	}
	return out
}

func fromLevels(levels []*pb.Level) ([]arch.Level, error) {
	if len(levels) == 0 {
		return nil, errors.New("no memory levels")
	}
	var c check
	out := make([]arch.Level, len(levels))
	for i, l := range levels {
		b := l.GetBandwidth()
		if l.GetBound() < 0 || l.GetBound() > pb.Bound_BOUND_LATENCY {
			c.fail("level %s has the unknown bound %d", l.GetName(), l.GetBound())
		}
		out[i] = arch.Level{
			Name: c.named("level", l.GetName()), Capacity: unit.Bytes(c.finite("capacity", l.GetCapacityBytes())),
			Latency: unit.Cycles(c.finite("latency", l.GetLatencyCycles())), Partitions: c.count("partitions",
				l.GetPartitions()), Bound: arch.Bound(l.GetBound()),
			Bandwidth: arch.Bandwidth{
				Peak: unit.BytesPerCycle(c.finite("bandwidth", b.GetPeakBytesPerCycle())), Units: c.count("bandwidth units",
					b.GetUnits()), Linear: b.GetLinear(),
				C0: c.finite("bandwidth c0", b.GetC0()), C1: c.finite("bandwidth c1", b.GetC1()), C2: c.finite("bandwidth c2",
					b.GetC2()),
			},
		}
	}
	return out, c.err
}
