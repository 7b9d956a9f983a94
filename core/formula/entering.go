package formula

import "github.com/origami-gemm/origami/core/arch"

// Entering reports which terms of a row enter the total of its kernel. A term does not if only the branch of a
// condition that is not taken names it, or if what it is part of is zero: the steps of a kernel that was timed by
// itself, a last wave that does not exist. A term that no total depends on is for the reader. It counts like the terms
// that it is computed from, and always if models have it in common. values is what Values returns. The result is nil if
// the total is prose, which says nothing.
func Entering(d *arch.Description, values map[string]float64) []bool {
	t := tracer{
		terms: make(map[string]int, len(d.Terms)), parsed: make([]*Expr, len(d.Terms)), values: over(values),
		entered: make([]bool, len(d.Terms)), ever: make([]bool, len(d.Terms)),
	}
	for i := range d.Terms {
		t.terms[d.Terms[i].Name] = i
		if f := d.Terms[i].Formula; !IsRule(f) {
			t.parsed[i], _ = Parse(f) // what does not parse depends on nothing
		}
	}
	for i := range d.Terms {
		kind := d.Terms[i].Kind
		if kind == arch.KindTotal && t.parsed[i] == nil {
			return nil
		}
		if kind == arch.KindTotal || kind == arch.KindShare {
			t.reach(i, t.ever, t.all)
			t.reach(i, t.entered, t.effective)
		}
	}
	for i := range d.Terms { // a term follows those that it is computed from
		if !t.ever[i] {
			t.entered[i] = d.Terms[i].Common != "" || t.shown(t.parsed[i])
		}
	}
	return t.entered
}

// tracer follows names from the total to what it is computed from.
type tracer struct {
	terms   map[string]int
	parsed  []*Expr  // nil for prose
	values  *Program // of constants
	entered []bool   // with the values
	ever    []bool   // with any values
}

// reach marks a term, and those that its formula leads to.
func (t *tracer) reach(i int, marked []bool, next func(*Expr) []*Expr) {
	if marked[i] {
		return
	}
	marked[i] = true
	var walk func(*Expr)
	walk = func(e *Expr) {
		if e == nil {
			return
		}
		if j, ok := t.terms[e.Name]; ok && e.Op == Name {
			t.reach(j, marked, next)
		}
		for _, a := range next(e) {
			walk(a)
		}
	}
	walk(t.parsed[i])
}

func (*tracer) all(e *Expr) []*Expr { return e.Args }

// effective returns the operands that the value of an operation rests on.
func (t *tracer) effective(e *Expr) []*Expr {
	switch e.Op {
	case When:
		if t.value(e.Args[0]) != 0 {
			return e.Args[:2]
		}
		return []*Expr{e.Args[0], e.Args[2]}
	case Multiply, Divide:
		if t.value(e.Args[0]) == 0 {
			return e.Args[:1]
		}
		if e.Op == Multiply && t.value(e.Args[1]) == 0 {
			return e.Args[1:]
		}
	case Add, Subtract:
		if t.value(e.Args[0]) != 0 && t.value(e.Args[1]) == 0 {
			return e.Args[:1]
		}
		if t.value(e.Args[0]) == 0 && t.value(e.Args[1]) != 0 {
			return e.Args[1:]
		}
	default:
	}
	return e.Args
}

// value is 1, which rules nothing out, for what has no value.
func (t *tracer) value(e *Expr) float64 {
	slot, err := t.values.compile(e)
	if err != nil {
		return 1
	}
	return t.values.frame[slot] // of constants alone, so it has been computed
}

// shown reports whether all terms that an expression names enter the total.
func (t *tracer) shown(e *Expr) bool {
	if e == nil {
		return true
	}
	if j, ok := t.terms[e.Name]; ok && e.Op == Name && !t.entered[j] {
		return false
	}
	for _, a := range e.Args {
		if !t.shown(a) {
			return false
		}
	}
	return true
}
