package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Ranked is one entry of a ranking.
type Ranked struct {
	Answer
	// 1 for the best
	Rank *int `json:"rank"`
	// with `--include-rejected`: `ok` or `rejected`
	Status string `json:"status,omitempty"`
	// `shared_memory`, `registers`, `atom_shape`, `warps`, `model_rule`, or another of its plugin
	Reason arch.Reason `json:"reason,omitempty"`
	// the reason in numbers; a rejected entry has no `predicted`
	Detail string `json:"detail,omitempty"`
	// by name, in the order of the model's schema
	Terms Fields `json:"terms" of:"Term"`
}

// Term is one number behind a prediction.
type Term struct {
	// `null` without one, as of a rejected configuration
	Value *Number `json:"value"`
	// the unit of the value
	Unit string `json:"unit"`
	// the part of the total, for its parts
	Share *Number `json:"share,omitempty"`
	// the name that all models share, if it differs
	Common string `json:"common,omitempty"`
	// `false` for a term that does not enter the total of this kernel
	Used *bool `json:"used,omitempty"`
}

// The states of an entry.
const (
	StatusOK       = "ok"
	StatusRejected = "rejected"
)

// Status says whether the configuration can be used.
func (e *Entry) Status() string {
	if e.Estimate.Reject != "" {
		return StatusRejected
	}
	return StatusOK
}

// Ranked returns an entry with its terms as a plain value. rejected says that the question asked for the configurations
// that cannot be used.
func (a *Ranking) Ranked(e *Entry, rejected bool) Ranked {
	out := Ranked{Answer: a.Answer(e), Rank: place(e.Rank), Detail: e.Detail, Terms: a.NamedTerms(e)}
	if rejected {
		out.Status, out.Reason = e.Status(), e.Estimate.Reject
	}
	return out
}

// Brief is an entry of a ranking without what all entries have in common.
type Brief struct {
	Rank      int         `json:"rank"`
	Config    gemm.Config `json:"config"`
	Predicted *Predicted  `json:"predicted"`
	Mapping   *Mapping    `json:"mapping,omitempty"`
	// what the interval rests on, as in an Answer
	Evidence arch.Evidence `json:"evidence"`
	Outside  []string      `json:"outside"`
}

// Brief returns an entry that can be used as a plain value.
func (a *Ranking) Brief(e *Entry) Brief {
	pick := a.Pick(e)
	outside := append([]string{}, a.Outside(e)...)
	return Brief{e.Rank, pick.Config, pick.Predicted, pick.Mapping, a.Scope(e).Evidence, outside}
}

// NamedTerms returns the terms of an entry by name, in the order of the schema.
func (a *Ranking) NamedTerms(e *Entry) Fields {
	fields := make(Fields, 0, len(e.Terms))
	for i := range e.Terms {
		fields = append(fields, Field{Name: a.Arch.Terms[i].Name, Value: a.Term(e, i)})
	}
	return fields
}

// TermColumns are the terms with their values alone, for a row that has a column for each.
func TermColumns(terms Fields) Fields {
	out := make(Fields, len(terms))
	for i, t := range terms {
		out[i] = Field{Name: t.Name + ".value", Value: t.Value.(Term).Value}
	}
	return out
}

// Term returns the i-th term of an entry.
func (a *Ranking) Term(e *Entry, i int) Term {
	schema := a.Arch.Terms[i]
	t := Term{Unit: schema.Unit, Common: schema.Common}
	if v := Number(e.Terms[i]); !IsRejectedTotal(schema, e.Terms[i]) {
		t.Value = &v
	}
	if s, ok := a.Share(e, i); ok {
		n := Number(s)
		t.Share = &n
	}
	return t
}
