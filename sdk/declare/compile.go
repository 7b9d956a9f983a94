package declare

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// compiled is a model with the parameters of one device.
type compiled struct {
	*formula.Program

	// Values of the device.
	units, partitions, clock, sharedMemory, registerFile, registersPerThread, atomsPerUnit float64

	terms   []int // slots
	total   int   // index of the total
	steps   []step
	kernels []kernel
	axes    []axis // of all kernels; each name once
	mapping [3]int // slots of GroupM, XCDs, Chunk
	levels  []arch.Level

	perProblem, perConfig formula.Steps // to run once per problem, and once per configuration
}

// step is a term that can limit the K loop.
type step struct {
	slot  int
	bound arch.Bound
}

type kernel struct {
	name  string
	space arch.Space
	rules []rule
}

type rule struct {
	reason arch.Reason
	when   int
	static bool // does not depend on the sizes of the problem
	detail []piece
}

// piece is a text or the value in a slot.
type piece struct {
	text string
	slot int // -1 for text
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// compile compiles all formulas. An error names the wrong one.
func (m *Model) compile(params hw.Set) (*compiled, error) {
	c := &compiled{Program: formula.NewProgram(), total: -1}
	for _, param := range params {
		if err := c.Constant(param.Name, param.Value); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", param.Name, err)
		}
	}
	for _, k := range m.Constants {
		if err := c.Constant(k.Name, k.Value); err != nil {
			return nil, fmt.Errorf("constant %s: %w", k.Name, err)
		}
	}
	for _, f := range []number{
		{&c.units, "Units", m.Units, ""},
		{&c.clock, "Clock", m.Clock, ""},
		{&c.sharedMemory, "SharedMemory", m.SharedMemory, ""},
		{&c.partitions, "Partitions", m.Partitions, "1"},
		{&c.registerFile, "RegisterFile", m.RegisterFile, "0"},
		{&c.registersPerThread, "RegistersPerThread", m.RegistersPerThread, "0"},
		{&c.atomsPerUnit, "AtomsPerUnit", m.AtomsPerUnit, "1"},
	} {
		if err := f.compute(c.Program); err != nil {
			return nil, err
		}
	}
	if err := m.compileAxes(c); err != nil {
		return nil, err
	}
	if err := m.compileTerms(c); err != nil {
		return nil, err
	}
	if err := m.compileKernels(c); err != nil {
		return nil, err
	}
	for i, f := range []struct{ what, formula, fallback string }{
		{"GroupM", m.GroupM, "1"}, {"XCDs", m.XCDs, "0"}, {"Chunk", m.Chunk, "0"},
	} {
		var err error
		if c.mapping[i], err = compileIn(c.Program, f.what, f.formula, f.fallback); err != nil {
			return nil, err
		}
	}
	c.perProblem = c.Steps(func(d formula.Deps) bool { return d != 0 && d&formula.OnConfig == 0 })
	c.perConfig = c.Steps(func(d formula.Deps) bool { return d&formula.OnConfig != 0 })
	return c, m.compileLevels(c)
}

// compileIn compiles a formula of the declaration, or fallback if the formula is empty.
func compileIn(p *formula.Program, what, f, fallback string) (int, error) {
	if f == "" {
		f = fallback
	}
	if f == "" {
		return 0, fmt.Errorf("%s is missing", what)
	}
	slot, err := p.Compile(f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return slot, nil
}

// number is a formula over parameters and constants, its fallback if it is empty, and the destination of its value.
type number struct {
	into                    *float64
	what, formula, fallback string
}

func (n number) compute(p *formula.Program) error {
	slot, err := compileIn(p, n.what, n.formula, n.fallback)
	if err == nil && p.Deps(slot) != 0 {
		err = fmt.Errorf("%s: formula %q depends on more than parameters and constants", n.what, n.formula)
	}
	if err == nil {
		*n.into = p.Frame()[slot]
	}
	return err
}

func (m *Model) compileTerms(c *compiled) error {
	for i, t := range m.Terms {
		fault := func(format string, args ...any) error {
			return fmt.Errorf("term %s: %w", t.Name, fmt.Errorf(format, args...))
		}
		if !snakeCase.MatchString(t.Name) {
			return fmt.Errorf("term %d is named %q: use snake_case", i+1, t.Name)
		}
		var slot int
		var err error
		if t.Func != nil {
			if !formula.IsRule(t.Formula) {
				return fault("it has a function, so its formula is prose: begin it with \"rule:\"")
			}
			slot, err = c.Call(t.Name, t.Func, t.Args)
		} else {
			slot, err = c.Define(t.Name, t.Formula)
		}
		if err != nil {
			return fault("%w", err)
		}
		c.terms = append(c.terms, slot)
		switch {
		case t.Kind == arch.KindTotal && c.total >= 0:
			return fault("%s is already the total", m.Terms[c.total].Name)
		case t.Kind == arch.KindTotal:
			c.total = i
		case t.Kind == arch.KindStep && t.Bound == arch.BoundUnknown:
			return fault("a step needs a Bound")
		case t.Kind == arch.KindStep:
			c.steps = append(c.steps, step{slot, t.Bound})
		case t.Bound != arch.BoundUnknown:
			return fault("only a step has a Bound")
		}
	}
	if c.total < 0 {
		return errors.New("no term is the total: give one Kind arch.KindTotal")
	}
	if len(c.steps) == 0 {
		return errors.New("no term is a step: give the terms that can limit the K loop Kind arch.KindStep and a Bound")
	}
	return nil
}

func (m *Model) compileKernels(c *compiled) error {
	if len(m.Kernels) == 0 {
		return errors.New("the model has no kernels")
	}
	for _, k := range m.Kernels {
		fault := func(err error) error { return fmt.Errorf("kernel %s: %w", k.Name, err) }
		family := kernel{name: k.Name, space: k.Space}
		family.space.Kernel = k.Name
		for _, values := range family.space.Numbers() {
			if values != nil && len(*values) == 0 {
				*values = []int{1}
			}
		}
		if k.Name == "" {
			return errors.New("a kernel has no name")
		}
		for _, named := range k.Space.Axes { // Enumerate ignores undeclared axes
			if _, err := gemm.FindAxis(k.Axes, named.Name); err != nil {
				return fault(err)
			}
		}
		if _, err := (arch.Space{}).Enumerate(family.space, k.Axes...); err != nil {
			return fault(err)
		}
		for _, r := range k.Rules {
			if !snakeCase.MatchString(string(r.Reason)) {
				return fault(fmt.Errorf("a rule has the reason %q: use snake_case", r.Reason))
			}
			compiled, err := c.rule(r)
			if err != nil {
				return fault(fmt.Errorf("rule %s: %w", r.Reason, err))
			}
			family.rules = append(family.rules, compiled)
		}
		c.kernels = append(c.kernels, family)
	}
	return nil
}

func (c *compiled) rule(r Rule) (rule, error) {
	when, err := compileIn(c.Program, "When", r.When, "")
	if err != nil {
		return rule{}, err
	}
	out := rule{reason: r.Reason, when: when, static: c.Deps(when)&formula.OnSizes == 0}
	rest := r.Detail
	for rest != "" {
		text, after, opens := strings.Cut(rest, "{")
		out.detail = append(out.detail, piece{text: text, slot: -1})
		if !opens {
			break
		}
		f, after, closes := strings.Cut(after, "}")
		if !closes {
			return rule{}, fmt.Errorf("the detail %q lacks a closing brace", r.Detail)
		}
		slot, err := compileIn(c.Program, "Detail", f, "")
		if err != nil {
			return rule{}, err
		}
		if out.static && c.Deps(slot)&formula.OnSizes != 0 {
			return rule{}, fmt.Errorf("{%s} depends on the problem's sizes, but the rule does not", f)
		}
		out.detail, rest = append(out.detail, piece{slot: slot}), after
	}
	return out, nil
}

// text returns the detail with the values of a frame.
func (r *rule) text(frame []float64) string {
	var b strings.Builder
	for _, p := range r.detail {
		if p.slot < 0 {
			b.WriteString(p.text)
		} else if v := frame[p.slot]; v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			b.WriteString(strconv.FormatFloat(v, 'f', 0, 64))
		} else {
			b.WriteString(strconv.FormatFloat(v, 'g', 4, 64))
		}
	}
	return b.String()
}

func (m *Model) compileLevels(c *compiled) error {
	if len(m.Levels) == 0 {
		return errors.New("the model has no memory levels")
	}
	for _, l := range m.Levels {
		n := &l.Names
		switch {
		case l.Name == "":
			return errors.New("a level has no name")
		case n.Bandwidth == "":
			return fmt.Errorf("level %s: Bandwidth is missing", l.Name)
		case !l.Bandwidth.Linear && n.C0+n.C1+n.C2 == "":
			l.Bandwidth.C2 = 1
		}
		var err error
		l.Numbers(func(text string, quantity *float64) {
			if err == nil {
				err = number{quantity, "level " + l.Name, text, ""}.compute(c.Program)
			}
			if v := *quantity; err == nil && text == n.Partitions && !(v >= 1 && v <= 1<<31 && v == math.Trunc(v)) {
				err = fmt.Errorf("level %s: %s is %v partitions", l.Name, text, v)
			}
		})
		if err != nil {
			return err
		}
		c.levels = append(c.levels, l)
	}
	return nil
}
