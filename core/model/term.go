// Package model is the skeleton of a model that is a table of terms. The formulas of the table are the only text of
// such a model: package sdk/modelgen turns them into its Go code and its page, and `origami explain` prints them.
//
// A model is its terms, its quantities and its inputs, which are the terms that no formula computes. It embeds Model,
// which lists candidates, estimates them and writes their terms, configuration by configuration.
package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
)

// Term is a row of a table. Its formula may name the parameters of the device, the constants, the quantities, the
// problem, the configuration and the rows above it (core/formula). The names decide when it is computed: once per
// device, per problem, per kernel, or for each kernel and problem.
type Term struct {
	Name, Unit, Formula, Doc string
	// When is a condition. The term is 0 if it does not hold.
	When string
	// By names the inputs of the generator that an input is one of. An input has prose as its formula: where its value
	// comes from. An exact one has a formula, which its model computes in whole numbers: formulas round the largest.
	By     string
	Exact  bool
	Kind   arch.TermKind
	Common string // the name that other models have for it (arch.Common…)
	Source string // empty for the page of the model
}

// Row returns a term that a formula computes. Line breaks in the formula are for the reader of the table.
func Row(name, unit, formula, doc string) Term {
	return Term{Name: name, Unit: unit, Formula: formula, Doc: doc}
}

// Input returns a term that the model's own code sets: by says with which others, from where its value comes from.
func Input(name, unit, by, from, doc string) Term {
	return Term{Name: name, Unit: unit, Formula: from, Doc: doc, By: by}
}

// Exactly makes an input of a term, whose formula the model's own code computes to the last bit.
func (t Term) Exactly(by string) Term {
	t.By, t.Exact = by, true
	return t
}

// From gives terms their source.
func From(source string, terms ...Term) []Term {
	for i := range terms {
		terms[i].Source = source
	}
	return terms
}

// As gives a term the name that comparisons have for it.
func (t Term) As(common string) Term {
	t.Common = common
	return t
}

// If makes a term 0 where a condition does not hold.
func (t Term) If(condition string) Term {
	t.When = condition
	return t
}

// Share makes a term a part of the total.
func (t Term) Share() Term { return t.of(arch.KindShare) }

// Step makes a term the time of a K step at one resource.
func (t Term) Step() Term { return t.of(arch.KindStep) }

// Total makes a term the total.
func (t Term) Total() Term { return t.of(arch.KindTotal).As(arch.CommonTotal) }

func (t Term) of(kind arch.TermKind) Term {
	t.Kind = kind
	return t
}

// text returns the formula with its condition, or the prose of an input.
func (t *Term) text() string {
	switch {
	case t.By != "" && !t.Exact:
		return "rule: " + t.Formula
	case t.When != "":
		return "when(" + t.When + ", " + t.Formula + ", 0)"
	}
	return t.Formula
}

// Table puts sections of a table together in the order in which a model computes, with each formula on one line.
// Operations are done in the order in which they are written: the results are the same bits everywhere.
func Table(parts ...[]Term) []Term {
	all := slices.Concat(parts...)
	for i := range all {
		f := &all[i].Formula
		if strings.ContainsRune(*f, '\n') { // most are on one: every start of a program comes here
			*f = strings.ReplaceAll(strings.Join(strings.Fields(*f), " "), "( ", "(")
		}
	}
	return all
}

// Schema describes the terms as an arch.Description lists them. Page documents those without a source of their own.
func Schema(terms []Term, page string) []arch.Term {
	out := make([]arch.Term, len(terms))
	for i := range terms {
		t := &terms[i]
		out[i] = arch.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.text(), Doc: t.Doc, Source: cmp.Or(t.Source, page), Kind: t.Kind,
			Common: t.Common,
		}
	}
	return out
}
