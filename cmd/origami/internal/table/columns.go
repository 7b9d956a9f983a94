// Package table writes answers: rows as a table for people, CSV, TSV and lines of JSON, all from one list of columns,
// and the lines and sentences around them.
package table

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/digits"
)

// Column is one quantity of rows of type T: its names, and its value in each format.
type Column[T any] struct{ of *column }

// column does not depend on the type of the rows, so that the program has its code once. The functions take a *T.
type column struct {
	key   string // in JSON, with a dot between an object and its key; empty without one
	omit  bool   // leave an empty value out of JSON
	value func(row any) any

	csv    []string // names in CSV and TSV
	cells  func(row any) []string
	people []string // headers for people
	text   func(row any) []string
}

// Columns describe rows of type T. The table, CSV, TSV and JSON follow from them, each in this order.
type Columns[T any] []Column[T]

// Col is a column of values. names has its JSON key, its name in CSV and TSV and its header for people, with "|"
// between them. A name that is missing is that before it, and "-" leaves the column out there. people writes the value
// for people, who otherwise see what CSV has: exact numbers, 0 and 1 for booleans, and lists with blanks.
func Col[T, V any](names string, value func(*T) V, people ...func(V) string) Column[T] {
	c := newColumn(names, func(row any) any { return value(row.(*T)) })
	if len(people) > 0 {
		c.text = func(row any) []string { return []string{people[0](value(row.(*T)))} }
	}
	return Column[T]{c}
}

// Opt is Col for a number that may be unknown, which is NaN: then it is null in JSON and nothing elsewhere.
func Opt[T any, F ~float64](names string, value func(*T) F, people ...func(F) string) Column[T] {
	c := newColumn(names, func(row any) any { return ask.Number(value(row.(*T))) })
	if len(people) > 0 {
		c.text = func(row any) []string {
			v := value(row.(*T))
			if !digits.Finite(float64(v)) {
				return []string{""}
			}
			return []string{people[0](v)}
		}
	}
	return Column[T]{c}
}

// Text is a column for people alone.
func Text[T any](header string, text func(*T) string) Column[T] { return Col("-|-|"+header, text) }

// Const is a column of one value.
func Const[T, V any](names string, value V) Column[T] { return Col(names, func(*T) V { return value }) }

// Group is a column of CSV and TSV, and for people, that has a cell for each of the names.
func Group[T any](names []string, cells func(*T) []string) Column[T] {
	all := func(row any) []string { return cells(row.(*T)) }
	return Column[T]{&column{csv: names, cells: all, people: names, text: all}}
}

// Part are the columns of a part of each row.
func Part[T, P any](columns Columns[P], of func(*T) *P) Columns[T] {
	out := make(Columns[T], len(columns))
	for i, c := range columns {
		out[i] = Column[T]{c.of.part(func(row any) any { return of(row.(*T)) })}
	}
	return out
}

func (c *column) part(of func(any) any) *column {
	p := *c
	if c.value != nil {
		p.value = func(row any) any { return c.value(of(row)) }
	}
	p.cells = func(row any) []string { return c.cells(of(row)) }
	p.text = func(row any) []string { return c.text(of(row)) }
	return &p
}

func newColumn(names string, value func(any) any) *column {
	var three [3]string
	parts := strings.Split(names, "|")
	for i := range three {
		if three[i] = parts[min(i, len(parts)-1)]; three[i] == "" {
			three[i] = three[i-1]
		}
	}
	c := &column{key: three[0], value: value, cells: func(row any) []string { return []string{Cell(value(row))} }}
	c.text = c.cells
	if c.key == "-" {
		c.key = ""
	}
	if three[1] != "-" {
		c.csv = three[1:2]
	}
	if three[2] != "-" {
		c.people = three[2:]
	}
	return c
}

// with returns a changed copy.
func (c *column) with(change func(*column)) *column {
	changed := *c
	change(&changed)
	return &changed
}

// Omit leaves an empty value out of JSON: none, zero, false or nothing.
func (c Column[T]) Omit() Column[T] { return Column[T]{c.of.with(func(c *column) { c.omit = true })} }

// Or writes a text for people in the place of an empty cell.
func (c Column[T]) Or(text string) Column[T] { return Column[T]{c.of.or(text)} }

func (c *column) or(text string) *column {
	or := *c
	or.text = func(row any) []string {
		cells := c.text(row)
		for i := range cells {
			if cells[i] == "" {
				cells[i] = text
			}
		}
		return cells
	}
	return &or
}

// CSV replaces what CSV and TSV have.
func (c Column[T]) CSV(cell func(*T) string) Column[T] {
	return Column[T]{c.of.with(func(c *column) {
		c.cells = func(row any) []string { return []string{cell(row.(*T))} }
	})}
}

// Same has CSV and TSV show what people see.
func (c Column[T]) Same() Column[T] {
	return Column[T]{c.of.with(func(c *column) { c.cells = c.text })}
}

// In leaves a column out of all formats but one. CSV includes TSV.
func (c Column[T]) In(f Format) Column[T] { return Column[T]{c.of.in(f)} }

func (c *column) in(f Format) *column {
	in := *c
	if f != JSON {
		in.key = ""
	}
	if f != CSV {
		in.csv = nil
	}
	if f != Table {
		in.people = nil
	}
	return &in
}

// If leaves a column out unless a condition holds.
func (c Column[T]) If(holds bool) Column[T] {
	if !holds {
		return c.In("")
	}
	return c
}

// Header lists the names of the columns in a table, CSV or TSV.
func (c Columns[T]) Header(f Format) (names []string) {
	for i := range c {
		if f == Table {
			names = append(names, c[i].of.people...)
		} else {
			names = append(names, c[i].of.csv...)
		}
	}
	return names
}

// Cells are a row of a table, CSV or TSV.
func (c Columns[T]) Cells(f Format, row *T) (cells []string) {
	for i := range c {
		cells = c[i].of.append(cells, f, row)
	}
	return cells
}

func (c *column) append(cells []string, f Format, row any) []string {
	switch {
	case f == Table && len(c.people) > 0:
		return append(cells, c.text(row)...)
	case f != Table && len(c.csv) > 0:
		return append(cells, c.cells(row)...)
	}
	return cells
}

// Text is a table for people.
func (c Columns[T]) Text(rows []T) (header []string, cells [][]string) {
	for i := range rows {
		cells = append(cells, c.Cells(Table, &rows[i]))
	}
	return c.Header(Table), cells
}

// Object is a row in JSON.
func (c Columns[T]) Object(row *T) ask.Object {
	var out ask.Object
	for i := range c {
		out = c[i].of.put(out, row)
	}
	return out
}

func (c *column) put(out ask.Object, row any) ask.Object {
	if c.key == "" {
		return out
	}
	if v := c.value(row); !c.omit || !empty(reflect.ValueOf(v)) {
		out = out.With(strings.Split(c.key, "."), v)
	}
	return out
}

// Objects are rows in JSON, which is [] without any.
func (c Columns[T]) Objects(rows []T) []ask.Object {
	out := make([]ask.Object, len(rows))
	for i := range rows {
		out[i] = c.Object(&rows[i])
	}
	return out
}

// Stream returns a function that writes a row as a line of CSV, TSV or JSON.
func (c Columns[T]) Stream(s *iostreams.Streams, f Format) func(*T) error {
	if f == JSON {
		return func(row *T) error { return JSONLine(s, c.Object(row)) }
	}
	w := newDelimited(s, f, c.Header(f))
	return func(row *T) error { return w.write(c.Cells(f, row)) }
}

// Write writes rows in a format. least is as in Grid.
func (c Columns[T]) Write(s *iostreams.Streams, f Format, rows []T, least ...string) error {
	if f == Table {
		header, cells := c.Text(rows)
		Grid{Header: header, Rows: cells, Least: least}.Write(s)
		return nil
	}
	write := c.Stream(s, f)
	for i := range rows {
		if err := write(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether encoding/json calls a value empty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// Cell is a value in CSV.
func Cell(v any) string { return cellOf(reflect.ValueOf(v)) }

func cellOf(v reflect.Value) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return ""
	case reflect.Float64:
		if n, ok := v.Interface().(ask.Number); ok && !digits.Finite(float64(n)) {
			return ""
		}
		return digits.Exact(v.Float())
	default:
	}
	if text, ok := v.Interface().(fmt.Stringer); ok {
		return text.String()
	}
	switch v.Kind() {
	case reflect.Bool:
		return Flag(v.Bool())
	case reflect.Int:
		return strconv.Itoa(int(v.Int()))
	case reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = cellOf(v.Index(i))
		}
		return strings.Join(words, " ")
	default:
		return v.String()
	}
}

// Positive is a number that is unknown unless it is positive.
func Positive[F ~float64](v F) F {
	if v > 0 {
		return v
	}
	return F(math.NaN())
}

// Known is a number that is unknown without a value.
func Known[F ~float64](v *F) F {
	if v == nil {
		return F(math.NaN())
	}
	return *v
}
