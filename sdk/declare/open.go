package declare

import (
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// checker converts computed values of a device and keeps the first error.
type checker struct {
	model, file string
	err         error
}

// whole returns v as an int of at least least.
func (c *checker) whole(what string, v, least float64) int {
	if c.err == nil && !(v >= least && v <= 1<<31 && v == math.Trunc(v)) {
		c.err = diag.Inputf("%s of model %s is %v, which is not a whole number from %v", what, c.model, v, least).
			At("%s", c.file).Do("correct the numbers of the device, or the plugin")
	}
	return int(v)
}

// finite returns v, which must be finite and at least least.
func (c *checker) finite(what string, v, least float64) float64 {
	if c.err == nil && !(v >= least && !math.IsInf(v, 0)) {
		c.err = diag.Inputf("%s of model %s is %v", what, c.model, v).
			At("%s", c.file).Do("correct the numbers of the device, or the plugin")
	}
	return v
}

// positive is the smallest value of a number that must not be zero.
const positive = math.SmallestNonzeroFloat64

// open makes an architecture from the model and a device.
func (m *Model) open(specs []hw.Spec, s catalog.Selection) (arch.Architecture, error) {
	sheet, params := s.Sheet, s.Params
	c, err := m.compile(params)
	if err != nil {
		return nil, diag.Inputf("model %s: %v", m.Name, err).
			At("%s", sheet.File).Do("give the numbers that it needs, or correct the plugin")
	}
	check := checker{model: m.Name, file: sheet.File}
	a := &architecture{compiled: c, with: func(values map[string]float64) (arch.Architecture, error) {
		other := *m
		other.Constants = slices.Clone(m.Constants)
		model.Override(other.Constants, values)
		return other.open(specs, s)
	}}
	a.Description = arch.Description{
		Arch:   sheet.Arch,
		Vendor: sheet.Vendor,
		Device: sheet.Device, DeviceName: sheet.Name, Aliases: sheet.Aliases,
		Model: m.Name, Kernels: m.kernels(),
		Rung: arch.RungSpec, ClockRung: arch.RungSpec,
		UnitName:           m.UnitName,
		Units:              check.whole("Units", c.units, 1),
		Partitions:         check.whole("Partitions", c.partitions, 1),
		Clock:              unit.Hertz(check.finite("Clock", c.clock, positive)),
		SharedMemory:       unit.Bytes(check.finite("SharedMemory", c.sharedMemory, 0)),
		RegisterFile:       check.whole("RegisterFile", c.registerFile, 0),
		RegistersPerThread: check.whole("RegistersPerThread", c.registersPerThread, 0),
		Params:             params, Constants: m.Constants, Order: m.Order, Monotone: m.Monotone,
		RanksOnly: m.RanksOnly,
		Families:  m.families(),
	}
	if f := sheet.Fitted; f != nil && f.Model == m.Name {
		a.Description.Fitted = []arch.Fitted{{DataSet: f.DataSet, Kernel: f.Kernel, Problems: f.Problems}}
	}
	if params.Calibrated(specs) {
		a.Description.Rung = arch.RungCalibrated
	}
	for _, t := range m.Terms {
		a.Description.Terms = append(a.Description.Terms, arch.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.Formula, Doc: t.Doc, Source: t.Source,
			Kind: t.Kind, Common: t.Common,
		})
	}
	a.Description.Unused = formula.Unused(params, m.predicts())
	a.Memory = c.levels
	for i := range a.Memory {
		a.Memory[i].Bandwidth.Units = a.Description.Units
		check.checkLevel(&a.Memory[i])
	}
	perUnit := check.whole("AtomsPerUnit", c.atomsPerUnit, 1)
	if check.err != nil {
		return nil, check.err
	}
	for i, atom := range sheet.Atoms {
		t, err := gemm.ParseDType(atom.Type)
		if err != nil {
			return nil, diag.Within(fmt.Sprintf("%s: atoms[%d]", sheet.File, i), err)
		}
		if a.Description.Atom(t) == nil {
			a.Description.Atoms = append(a.Description.Atoms, arch.Atom{
				DType: t, M: atom.M, N: atom.N, K: atom.K, Latency: unit.Cycles(atom.Cycles), PerUnit: perUnit,
			})
		}
	}
	if len(a.Description.Atoms) == 0 {
		return nil, diag.Inputf("the device has no atoms, so the model supports no element type").
			At("%s", sheet.File).Do("list the matrix instructions under atoms:")
	}
	a.Description.Peak = arch.PeakRates(params)
	a.prepare()
	return a, nil
}

// kernels lists the names of the kernel families.
func (m *Model) kernels() []string {
	names := make([]string, len(m.Kernels))
	for i := range m.Kernels {
		names[i] = m.Kernels[i].Name
	}
	return names
}

// predicts returns the formulas that predictions depend on. What only the description shows, such as the number of
// units, is not among them.
func (m *Model) predicts() []string {
	formulas := []string{m.Clock, m.AtomsPerUnit, m.GroupM, m.XCDs, m.Chunk}
	for _, t := range m.Terms {
		if t.Func == nil {
			formulas = append(formulas, t.Formula)
		}
		formulas = append(formulas, t.Args...)
	}
	for _, k := range m.Kernels {
		for _, r := range k.Rules {
			formulas = append(formulas, r.When)
		}
	}
	return formulas
}

// checkLevel checks the values of a memory level on a device.
func (c *checker) checkLevel(l *arch.Level) {
	c.finite(l.Name+" Capacity", float64(l.Capacity), 0)
	c.finite(l.Name+" Latency", float64(l.Latency), 0)
	c.finite(l.Name+" Bandwidth", float64(l.Bandwidth.Peak), positive)
	c.finite(l.Name+" DataSheet", float64(l.DataSheet), 0)
	for _, x := range []float64{l.Bandwidth.C0, l.Bandwidth.C1, l.Bandwidth.C2} {
		c.finite(l.Name+" share of the bandwidth", x, -math.MaxFloat64)
	}
}
