package main

import (
	"bytes"
	_ "embed" // introduction
	"fmt"
	"strings"
)

//go:embed json.txt
var introduction string

// outputs are the parts of docs/json.md: what a command prints, and the struct of it.
var outputs = []struct{ command, prints, of string }{
	{"select", "One object; with `--problems` a line per problem, in the order of the file, and none for a problem " +
		"without an answer, whose error is on stderr. With `--top` an object per configuration.", "ask.Answer"},
	{"select, several M", "One object; CSV its `bands`.", "ask.Bands"},
	{"rank", "A line per configuration, best first; in CSV a term is `terms.NAME.value`.", "ask.Ranked"},
	{"explain", "One object. CSV has a row per number; its `kind` is also `parameter`, `constant`, or `answer` for a " +
		"key of the answer. `--diff`: two objects, `first` and `second`; CSV has the rows that differ.", "ask.Explanation"},
	{"compare", "One object; with `--problems` one per problem and then one with `summary` and `classes`: per class " +
		"and side the number of problems, of `decided` ones, of `fastest` and `clear` sides, geometric " +
		"means, and with a column `count` the sum of all times in `seconds`. A side that failed has `error`. CSV has " +
		"a row per side.", "ask.Comparison"},
	{"map", "A line per size. `--from` reads the CSV, or any table with `m`, `n` and `k`.", "ask.Cell"},
	{"roofline", "One object. CSV has a row per kernel, with `levels.NAME.bytes` and so on, or without kernels per " +
		"ceiling. [Roofline](roofline.md) defines the numbers.", "ask.Rooflines"},
	{"ladder", "One object; CSV its `rungs`. [The ladder](ladder.md) describes the kernels.", "ask.Ladder"},
	{"bench", "A line per problem and kernel family, then one with `summary`.", "measurecmd.compared"},
	{"bench, summary", "", "score.ComparisonSummary"},
	{"tune", "A line per size, then one with `summary`. `tune.json` has the same as `sizes` and `summary`. " +
		"[Tuning](tuning.md) describes the terms.", "measurecmd.tuned"},
	{"tune, summary", "", "measurecmd.summary"},
	{"tune --dry-run", "One object; CSV its `sets`.", "measurecmd.planned"},
	{"eval", "One object; CSV its `problems`. [Evaluating](evaluating.md) defines the numbers.", "ask.Evaluation"},
	{"eval, one configuration per problem", "One object; CSV its `kernels`.", "evalcmd.singles"},
	{"eval --intervals", "One object; CSV has the ranges.", "evalcmd.intervals"},
	{"eval --published", "One object; CSV has a row per group and class (`all` for the group), with `--pairs` its " +
		"`pairs`.", "evalcmd.publishedAnswer"},
	{"eval --published --intervals", "A line per device, scheme and types.", "evalcmd.publishedIntervals"},
	{"model", "One object; CSV its `devices`. [A language model on a GPU](step.md) defines the numbers.",
		"modelcmd.answer"},
	{"pin", "A line per launch. [pin](pin.md) defines the numbers.", "pincmd.pin"},
	{"table", "`invariant` prints one object, which vLLM reads. CSV of every table has a row per kernel.",
		"tablecmd.invariantTable"},
	{"table layers", "One object; CSV its `steps`.", "tablecmd.layerTables"},
	{"table fused-moe", "One object. The files that it writes have the kernels alone.", "tablecmd.expertTable"},
	{"table block-fp8", "One object.", "tablecmd.blockTable"},
	{"table check", "One object.", "tablecmd.tableCheck"},
	{"fit", "One object; CSV its `quantities`.", "calibratecmd.fitted"},
	{"here", "One object; CSV its `checked`.", "calibratecmd.hered"},
	{"calibrate", "One object; CSV its `numbers`.", "calibratecmd.calibrated"},
	{"logic build, show", "One object; CSV its `regret`, of `show` a row per kernel.", "logiccmd.summaryJSON"},
	{"logic eval --folds", "A line per number of kernels and way of answering.", "logic.Trial"},
	{"logic eval", "A line per choice; CSV has a row per size.", "logiccmd.choice"},
	{"records merge", "One object.", "recordscmd.mergedJSON"},
	{"records verify", "A line per folder.", "recordscmd.verifiedJSON"},
	{"records show", "One object; CSV its `gpus`.", "recordscmd.shownJSON"},
	{"arch ls", "A line per device.", "ask.Arch"},
	{"arch show", "One object; CSV its `parameters`.", "catalogcmd.shown"},
	{"trust", "A line per kind of prediction.", "catalogcmd.trust"},
	{"config", "A line per setting: `key`, `value`, `source`, `flag`, `env`.", ""},
	{"plugin ls", "A line per plugin.", "plugincmd.listed"},
	{"plugin check", "A line per [check](conformance.md).", "plugincmd.checked"},
	{"plugin new", "One object. `plugin trust` and `distrust`: `name`, `path`, `lock_file`.", "plugincmd.created"},
}

// embedded are structs in others whose keys the page has once.
var embedded = map[string]string{
	"ask.Answer": "keys of `select`", "gemm.Record": "keys of `problem`", "ask.Term": "keys of `terms` of `rank`",
}

// plain are structs that have no keys of their own on the page: texts, and what the introduction has.
var plain = map[string]bool{"gemm.Config": true, "ask.Field": true}

// page is docs/json.md.
func (g *generator) page() []byte {
	p := pageWriter{generator: g, seen: map[string]bool{}, said: map[string]bool{}}
	p.WriteString(strings.TrimSpace(introduction) + "\n")
	for _, out := range outputs {
		fmt.Fprintf(&p, "\n### %s\n", out.command)
		if out.prints != "" {
			fmt.Fprintf(&p, "\n%s\n", out.prints)
		}
		if out.of == "" {
			continue
		}
		if g.structs[out.of] == nil {
			g.err = fmt.Errorf("docs/json.md: there is no struct %s", out.of)
		}
		p.WriteByte('\n')
		p.keys(out.of, "")
	}
	return p.Bytes()
}

type pageWriter struct {
	*generator
	bytes.Buffer
	seen map[string]bool // structs
	said map[string]bool // keys with their explanations
}

// keys writes the keys of a struct as a list, and below a key the keys of a struct that the page does not have yet.
func (p *pageWriter) keys(name, indent string) {
	p.seen[name] = true
	keys, known := p.promoted(name)
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n].doc == "" { // it shares the comment of the key before it
			n++
		}
		names, inner := make([]string, n), ""
		for i, k := range keys[:n] {
			names[i] = "`" + k.name + "`"
			if k.of == "ask.Side" {
				k.of = "ask.Compared" // or ask.Failed, which the first says
			}
			if p.structs[k.of] != nil && !p.seen[k.of] && !plain[k.of] {
				inner = k.of
			}
		}
		list, doc := strings.Join(names, ", "), keys[0].doc
		switch {
		case doc == "":
			p.err = fmt.Errorf("%s has no comment at the key %s", name, keys[0].name)
		case inner == "" && (p.said[list+doc] || plainly(doc)):
			known = append(known, names...)
		default:
			p.said[list+doc] = true
			fmt.Fprintf(p, "%s- %s: %s\n", indent, list, strings.TrimPrefix(doc, "the "))
			if inner != "" {
				p.keys(inner, indent+"  ")
			}
		}
		keys = keys[n:]
	}
	if len(known) > 0 {
		fmt.Fprintf(p, "%s- %s\n", indent, strings.Join(known, ", "))
	}
}

// plainly reports whether an explanation says no more than the name of a key, or that the page has it elsewhere.
func plainly(doc string) bool {
	return len(strings.Fields(doc)) <= 4 && !strings.ContainsAny(doc, "`÷−,0123456789") ||
		strings.HasPrefix(doc, "as in ") && !strings.ContainsAny(doc, ",;:.")
}

// promoted returns the keys of a struct and of the structs embedded in it, and names embedded ones that the page has.
func (p *pageWriter) promoted(name string) (keys []key, known []string) {
	for _, k := range p.structs[name] {
		switch inner := embedded[k.of]; {
		case k.name != "":
			keys = append(keys, k)
		case inner != "":
			known = append(known, inner)
		default:
			more, also := p.promoted(k.of)
			keys, known = append(keys, more...), append(known, also...)
		}
	}
	return keys, known
}
