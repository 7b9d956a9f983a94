// Package show writes answers: rows as a table for people, CSV and lines of JSON, all from structs.
package show

import (
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/unit"
)

// Rows writes rows of an answer, each as soon as it is known. The struct T describes a row once. Its JSON is a line.
// Its keys, flattened with dots, are the columns of CSV. A table for people has the columns that are named
// here.
//
// The cells of CSV are the values of the JSON: an absent value and null are empty, numbers have the same digits, a list
// of numbers has blanks between them, and a list of texts has "; ". A pair is two columns, .low and .high. A list of
// objects is in JSON only. An object with free keys, such as the terms of a model, has the keys of the first row, as an
// optional object has, or all keys of the rows that Like or All are given.
type Rows[T any] struct {
	s       *iostreams.Streams
	format  Format
	columns []Column[T]
	keys    []string // of CSV, from the first row on
	places  map[string]int
	csv     *delimited
	rows    []T // of a table
	least   []string
}

// Column is a column of a table for people.
type Column[T any] struct {
	header string
	text   func(*T) string
}

// Key is the column of a key of the JSON, such as predicted.seconds. The header is the last part of the key, or the
// given one. The unit of the struct's field, as in `unit:"s"`, says how people read the value: s, Hz, B, B/s, FLOP/s
// and cycles have SI prefixes or six digits, and fraction is a percentage.
func Key[T any](key string, header ...string) Column[T] {
	name := key[strings.LastIndexByte(key, '.')+1:]
	if len(header) > 0 {
		name = header[0]
	}
	path := strings.Split(key, ".")
	return Column[T]{name, func(row *T) string {
		v, unit := find(reflect.ValueOf(row).Elem(), path)
		return cellOf(v, unit)
	}}
}

// Text is a column that is computed for people.
func Text[T any](header string, text func(*T) string) Column[T] { return Column[T]{header, text} }

// Number is a column of numbers, empty where there is none: of 0, NaN and infinity.
func Number[T any](header string, number func(*T) float64, write func(float64) string) Column[T] {
	return Text(header, func(row *T) string {
		if v := number(row); digits.Finite(v) && v != 0 {
			return write(v)
		}
		return ""
	})
}

// If leaves a column out unless a condition holds.
func (c Column[T]) If(holds bool) Column[T] {
	if !holds {
		c.text = nil
	}
	return c
}

// Or writes a text in the place of an empty cell.
func (c Column[T]) Or(text string) Column[T] {
	of := c.text
	if of != nil {
		c.text = func(row *T) string {
			if cell := of(row); cell != "" {
				return cell
			}
			return text
		}
	}
	return c
}

// NewRows begins an answer in a format.
func NewRows[T any](s *iostreams.Streams, f Format, columns ...Column[T]) *Rows[T] {
	r := &Rows[T]{s: s, format: f}
	for _, c := range columns {
		if c.text != nil {
			r.columns = append(r.columns, c)
		}
	}
	return r
}

// Least names the columns of a table that may be left out where the screen is narrow, see Grid.
func (r *Rows[T]) Least(headers ...string) *Rows[T] {
	r.least = headers
	return r
}

// Write writes all rows of an answer in a format.
func Write[T any](s *iostreams.Streams, f Format, rows []T, columns ...Column[T]) error {
	return NewRows(s, f, columns...).All(rows)
}

// Like names the columns of CSV before the first row: all that some of the given rows have.
func (r *Rows[T]) Like(rows []T) *Rows[T] {
	if r.format == JSON || r.format == Table || r.csv != nil {
		return r
	}
	var last []string
	for i := range rows {
		keys, at := Keys(&rows[i]), 0
		if slices.Equal(keys, last) {
			continue
		}
		for _, key := range keys {
			if known := slices.Index(r.keys, key); known >= 0 {
				at = known + 1
				continue
			}
			r.keys = slices.Insert(r.keys, at, key)
			at++
		}
		last = keys
	}
	return r
}

// All writes all rows.
func (r *Rows[T]) All(rows []T) error {
	r.Like(rows)
	for i := range rows {
		if err := r.Add(&rows[i]); err != nil {
			return err
		}
	}
	return r.Close()
}

// Add writes a row. A table keeps it until Close.
func (r *Rows[T]) Add(row *T) error {
	switch r.format {
	case JSON:
		return JSONLine(r.s, row)
	case Table:
		r.rows = append(r.rows, *row)
		return nil
	default:
	}
	if r.csv == nil {
		if err := r.head(row); err != nil {
			return err
		}
	}
	return r.csv.write(cells(row, r.places))
}

// Close writes the table. A CSV without rows has a header where the struct alone tells it.
func (r *Rows[T]) Close() error {
	switch {
	case r.format == Table:
		header, cells := r.Text(r.rows)
		Grid{Header: header, Rows: cells, Least: r.least}.Write(r.s)
		r.rows = nil
	case r.format != JSON && r.csv == nil:
		var none T
		return r.head(&none)
	}
	return nil
}

// head writes the header of CSV.
func (r *Rows[T]) head(first *T) (err error) {
	if r.keys == nil {
		r.keys = Keys(first)
	}
	r.places = placesOf(r.keys)
	r.csv, err = newDelimited(r.s, r.keys)
	return err
}

// Text are the cells of a table.
func (r *Rows[T]) Text(rows []T) (header []string, cells [][]string) {
	for _, c := range r.columns {
		header = append(header, c.header)
	}
	cells = make([][]string, len(rows))
	for i := range rows {
		for _, c := range r.columns {
			cells[i] = append(cells[i], c.text(&rows[i]))
		}
	}
	return header, cells
}

// Keys are the flattened keys of the scalar values in the JSON of a row, in its order. Of an optional object and of an
// object with free keys, they are those that the row has.
func Keys(row any) (keys []string) {
	seen := map[string]bool{}
	walk("", reflect.ValueOf(row), 1, func(key string, _ int, _ func() string) {
		if !seen[key] { // an embedded struct may have a key of the struct around it
			seen[key] = true
			keys = append(keys, key)
		}
	})
	return keys
}

// columned is a type whose JSON does not follow from its fields: its keys, and its values as cells.
type columned interface {
	Columns() []string
	Cells() []string
}

// named is an object with free keys in an order.
type named interface{ Named() ([]string, []any) }

// walk passes each scalar value in the JSON of v on, with its flattened key and how deep its struct is embedded.
func walk(prefix string, v reflect.Value, depth int, pass func(key string, depth int, cell func() string)) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			if t := v.Type(); t.Kind() == reflect.Pointer && !nested(t.Elem()) {
				walk(prefix, reflect.Zero(t.Elem()), depth, func(key string, depth int, _ func() string) {
					pass(key, depth, empty)
				})
			}
			return
		}
		v = v.Elem()
	}
	if c, ok := as[columned](v); ok {
		var cells []string
		for i, name := range c.Columns() {
			pass(joined(prefix, name), depth, func() string {
				if cells == nil {
					cells = c.Cells()
				}
				return cells[i]
			})
		}
		return
	}
	if n, ok := as[named](v); ok {
		names, values := n.Named()
		for i, name := range names {
			walk(joined(prefix, name), reflect.ValueOf(values[i]), depth, pass)
		}
		return
	}
	switch t := shapeOf(v.Type()); {
	case t.scalar:
	case v.Kind() == reflect.Struct:
		for i := range t.fields {
			f := &t.fields[i]
			switch value := v.Field(f.index); {
			case f.inline:
				walk(prefix, value, depth+1, pass)
			case f.omit && value.IsZero():
				walk(joined(prefix, f.name), value, depth, func(key string, depth int, _ func() string) {
					pass(key, depth, empty)
				})
			default:
				walk(joined(prefix, f.name), value, depth, pass)
			}
		}
		return
	case v.Kind() == reflect.Array && v.Len() == 2:
		pass(prefix+".low", depth, func() string { return scalar(v.Index(0)) })
		pass(prefix+".high", depth, func() string { return scalar(v.Index(1)) })
		return
	case v.Kind() == reflect.Slice && nested(v.Type().Elem()):
		return
	}
	pass(prefix, depth, func() string { return scalar(v) })
}

func empty() string { return "" }

// scalar is a value of JSON as a cell.
func scalar(v reflect.Value) string {
	if text, ok := as[encoding.TextMarshaler](v); ok {
		line, _ := text.MarshalText() // the types have a text
		return string(line)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return scalar(v.Elem())
	case reflect.Float64:
		if !digits.Finite(v.Float()) {
			return ""
		}
		line, _ := json.Marshal(v.Float()) // it is finite
		return string(line)
	case reflect.Slice, reflect.Array:
		cells, between := make([]string, v.Len()), " "
		for i := range cells {
			if cells[i] = scalar(v.Index(i)); strings.ContainsAny(cells[i], " ,") {
				between = "; "
			}
		}
		return strings.Join(cells, between)
	case reflect.Map:
		var cells []string
		for _, key := range v.MapKeys() {
			cells = append(cells, key.String()+"="+scalar(v.MapIndex(key)))
		}
		slices.Sort(cells)
		return strings.Join(cells, " ")
	case reflect.String:
		return v.String()
	default:
		line, err := json.Marshal(v.Interface())
		if err != nil {
			return ""
		}
		return string(line)
	}
}

// as returns a value as an interface that it has. A struct of an unexported type in another has its fields only.
func as[T any](v reflect.Value) (of T, ok bool) {
	if v.CanInterface() {
		of, ok = v.Interface().(T)
	}
	return of, ok
}

// nested reports whether the JSON of a type is an object or a list.
func nested(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Interface:
		return !t.Implements(texter)
	default:
		return false
	}
}

func joined(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	texter    = reflect.TypeFor[encoding.TextMarshaler]()
)

// shape is what a type says of the JSON of its values: that it is one value, or the fields of an object.
type shape struct {
	scalar bool
	fields []field
}

// field is a field of a struct that is in JSON: its key, or inline for a struct whose fields take its place.
type field struct {
	index        int
	name, unit   string
	inline, omit bool
}

// shapes are the shapes by type: rankings have thousands of rows of one.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{scalar: t.Implements(marshaler) || t.Implements(texter)}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := f.Anonymous && name == ""
		if inline || f.IsExported() && name != "-" && name != "" {
			s.fields = append(s.fields, field{i, name, f.Tag.Get("unit"), inline, options != ""})
		}
	}
	shapes.Store(t, s)
	return s
}

// Cells are the values of a row's JSON under keys of Keys. Those that the row does not have are empty.
func Cells(row any, keys []string) []string { return cells(row, placesOf(keys)) }

func placesOf(keys []string) map[string]int {
	places := make(map[string]int, len(keys))
	for i, key := range keys {
		places[key] = i
	}
	return places
}

func cells(row any, places map[string]int) []string {
	out, depths := make([]string, len(places)), make([]int, len(places))
	walk("", reflect.ValueOf(row), 1, func(key string, depth int, cell func() string) {
		if i, ok := places[key]; ok && (depths[i] == 0 || depth <= depths[i]) {
			out[i], depths[i] = cell(), depth
		}
	})
	return out
}

// find returns the value at a path of keys, and its unit. It is not valid where an object is absent.
func find(v reflect.Value, path []string) (reflect.Value, string) {
	unit := ""
	for _, name := range path {
		if v, unit = step(v, name); !v.IsValid() {
			break
		}
	}
	return v, unit
}

func step(v reflect.Value, name string) (reflect.Value, string) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return v, ""
	}
	if n, ok := as[named](v); ok {
		names, values := n.Named()
		if i := slices.Index(names, name); i >= 0 {
			return reflect.ValueOf(values[i]), ""
		}
		return reflect.Value{}, ""
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, ""
	}
	t := shapeOf(v.Type())
	for i := range t.fields {
		f := &t.fields[i]
		if f.inline {
			if found, unit := step(v.Field(f.index), name); found.IsValid() {
				return found, unit
			}
		} else if f.name == name {
			return v.Field(f.index), f.unit
		}
	}
	return reflect.Value{}, ""
}

// cellOf writes a value for people.
func cellOf(v reflect.Value, as string) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return ""
		}
		if text, ok := v.Interface().(fmt.Stringer); ok {
			return text.String()
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	if v.Kind() == reflect.Float64 {
		if !digits.Finite(v.Float()) {
			return ""
		}
		if as != "" {
			return quantity(v.Float(), as)
		}
	}
	if text, ok := v.Interface().(fmt.Stringer); ok {
		return text.String()
	}
	switch v.Kind() {
	case reflect.Float64:
		return digits.SixDigits(v.Float())
	case reflect.Bool:
		if v.Bool() {
			return "yes"
		}
		return "no"
	case reflect.Slice, reflect.Array:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = cellOf(v.Index(i), as)
		}
		return strings.Join(words, ", ")
	default:
		return fmt.Sprint(v.Interface())
	}
}

// quantity writes a number with its unit.
func quantity(v float64, as string) string {
	switch as {
	case "fraction":
		return digits.Percent(v)
	case "cycles":
		return digits.SixDigits(v)
	case "ratio":
		return digits.ThreeDigits(v)
	case "ms":
		return unit.Seconds(v / 1e3).String()
	case "s":
		return unit.Seconds(v).String()
	default:
		return digits.Quantity(v, as)
	}
}

// delimited writes a header and rows as CSV. Cells are printable, so that a row is a line, and no formulas.
type delimited struct {
	csv *csv.Writer
	row []string
}

// newDelimited starts a table.
func newDelimited(s *iostreams.Streams, header []string) (*delimited, error) {
	r := &delimited{csv: csv.NewWriter(s.Writer())}
	return r, r.write(header)
}

// write adds a row. Only the streams buffer, so that flushing them writes every row.
func (r *delimited) write(row []string) error {
	r.row = r.row[:0]
	for _, cell := range row {
		r.row = append(r.row, printable.Cell(cell))
	}
	if err := r.csv.Write(r.row); err != nil {
		return err
	}
	r.csv.Flush()
	return r.csv.Error()
}
