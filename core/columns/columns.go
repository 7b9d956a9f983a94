// Package columns stores lines of text by what varies in them: recorded times in JSON Lines or CSV take half of what
// gzip makes of the lines. What is read back is the text, byte for byte. Table reads the rows of CSV in such a file, in
// gzip or as it is: all tables of recorded times are read by it.
//
// A line is a template, which lines have in common, and numbers that fill its gaps. The numbers of one key of JSON, or
// of one column of CSV, are stored together. A file is gzip, whose checksum covers it, of
//
//	"columns 1\n"
//	count of columns, and for each the count of its words, the words, and of the index of each number's word a text of
//	the lowest bytes, one of the next bytes, and so on
//	count of templates, and for each the count of gaps, the column of each gap, and the texts around the gaps
//	count of lines, and the template of each
//
// Counts and indices are varints. A text has its length before it.
package columns

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/limit"
)

// Suffix ends the name of a file of columns.
const Suffix = ".cols"

const magic = "columns 1\n"

var errDamaged = errors.New("the columns are damaged")

// decoder reads from a text. wrong is set where it is damaged, and then it reads zeros.
type decoder struct {
	text  []byte
	wrong bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.text)
	if n <= 0 {
		d.wrong, d.text = true, nil
		return 0
	}
	d.text = d.text[n:]
	return v
}

// count reads how many things follow, of at least a byte each.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.text)) {
		d.wrong, d.text = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	text := d.text[:n:n]
	d.text = d.text[n:]
	return text
}

// list reads a count of texts and returns where each begins, which takes less memory than the texts would.
func (d *decoder) list(skip func()) (begins []uint32) {
	all := len(d.text)
	for range d.count() {
		if d.wrong {
			return nil
		}
		begins = append(begins, uint32(all-len(d.text)))
		skip()
	}
	return begins
}

// column is the numbers of a column that are not used yet.
type column struct {
	words  []byte
	begins []uint32 // of words
	index  [][]byte
}

func (d *decoder) column() column {
	c := column{words: d.text}
	c.begins = d.list(func() { d.bytes() })
	for range width(len(c.begins)) {
		c.index = append(c.index, d.bytes())
	}
	return c
}

// width is how many bytes an index of so many words takes.
func width(words int) int { return (bits.Len(uint(words)) + 7) / 8 }

// next appends the next number, and reports whether there is one.
func (c *column) next(line []byte) ([]byte, bool) {
	at := 0
	for i, part := range c.index {
		if len(part) == 0 {
			return line, false
		}
		at |= int(part[0]) << (8 * i)
		c.index[i] = part[1:]
	}
	if at >= len(c.begins) {
		return line, false
	}
	word := decoder{text: c.words[c.begins[at]:]}
	return append(line, word.bytes()...), true
}

// reader makes lines.
type reader struct {
	decoder
	columns []column
	all     []byte // the templates, and where each begins
	begins  []uint32
	lines   int // that follow
	line    []byte
	rest    []byte // of line, which was not read yet
}

// NewReader returns the text of a file. It holds the file in memory, and makes a line at a time.
func NewReader(file io.Reader, name, fix string) (io.Reader, error) {
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	text, err := limit.ReadAll(z, name, limit.Table, fix)
	if err != nil {
		return nil, err
	}
	body, ok := bytes.CutPrefix(text, []byte(magic))
	if !ok {
		return nil, errors.New("it does not hold columns")
	}
	r := &reader{decoder: decoder{text: body}}
	for range min(r.count(), mostColumns) {
		r.columns = append(r.columns, r.column())
	}
	r.all = r.text
	r.begins = r.list(func() {
		gaps := r.count()
		for range gaps {
			r.uvarint()
		}
		for range gaps + 1 {
			r.bytes()
		}
	})
	if r.lines = r.count(); r.wrong {
		return nil, errDamaged
	}
	return r, nil
}

// mostColumns is far more than kinds of lines have numbers.
const mostColumns = 1 << 12

// Read implements io.Reader.
func (r *reader) Read(to []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.lines == 0 {
			return 0, io.EOF
		}
		r.lines--
		if at := r.uvarint(); at < uint64(len(r.begins)) && !r.wrong {
			r.fill(decoder{text: r.all[r.begins[at]:]})
		} else {
			r.wrong = true
		}
		if r.wrong {
			return 0, errDamaged
		}
		r.rest = r.line
	}
	n := copy(to, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill makes the next line of its template.
func (r *reader) fill(template decoder) {
	gaps := make([]uint64, 0, 64)
	for range template.count() {
		gaps = append(gaps, template.uvarint())
	}
	r.line = append(r.line[:0], template.bytes()...)
	for _, at := range gaps {
		ok := at < uint64(len(r.columns))
		if ok {
			r.line, ok = r.columns[at].next(r.line)
		}
		r.wrong = r.wrong || !ok
		r.line = append(r.line, template.bytes()...)
	}
	r.line = append(r.line, '\n')
}

// Write writes a text, which ends with a line feed, as a file.
func Write(w io.Writer, text []byte) error {
	e := encoder{keys: map[key]int{}, templates: map[string]int{}}
	lines := 0
	for line := range bytes.Lines(text) {
		line, ok := bytes.CutSuffix(line, []byte("\n"))
		if !ok {
			return errors.New("the last line has no line feed")
		}
		e.add(line)
		lines++
	}
	out := binary.AppendUvarint([]byte(magic), uint64(len(e.columns)))
	for _, numbers := range e.columns {
		out = appendColumn(out, numbers)
	}
	out = append(binary.AppendUvarint(out, uint64(len(e.templates))), e.text...)
	out = append(binary.AppendUvarint(out, uint64(lines)), e.order...)
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(out)
	}
	if err != nil {
		return err
	}
	return z.Close()
}

// key is a key of JSON, or none in CSV, and the gap behind it.
type key struct {
	name string
	gap  int
}

type encoder struct {
	keys      map[key]int
	columns   [][]string
	templates map[string]int // in the form of the file
	text      []byte         // all of them
	order     []byte         // the template of each line
}

var (
	number  = regexp.MustCompile(`\d+(\.\d+)?([eE][+-]?\d+)?`)
	lastKey = regexp.MustCompile(`.*"([^"]*)":`)
)

// cell is more than the numbers of a cell of CSV.
const cell = 1 << 16

// add adds a line.
func (e *encoder) add(line []byte) {
	var gaps, texts []byte
	at, begin, json := key{}, 0, bytes.HasPrefix(line, []byte("{"))
	found := number.FindAllIndex(line, -1)
	for _, place := range found {
		before := line[begin:place[0]]
		switch name := lastKey.FindSubmatch(before); {
		case json && name != nil:
			at = key{string(name[1]), 0}
		case !json && bytes.IndexByte(before, ',') >= 0:
			at.gap = (at.gap/cell + bytes.Count(before, []byte(","))) * cell
		case !json || string(before) != "," && string(before) != ", ": // those are in lists
			at.gap++
		}
		i, known := e.keys[at]
		if !known {
			i = len(e.columns)
			e.keys[at], e.columns = i, append(e.columns, nil)
		}
		e.columns[i] = append(e.columns[i], string(line[place[0]:place[1]]))
		gaps, texts = binary.AppendUvarint(gaps, uint64(i)), appendText(texts, before)
		begin = place[1]
	}
	texts = appendText(texts, line[begin:])
	text := string(slices.Concat(binary.AppendUvarint(nil, uint64(len(found))), gaps, texts))
	i, known := e.templates[text]
	if !known {
		i = len(e.templates)
		e.templates[text], e.text = i, append(e.text, text...)
	}
	e.order = binary.AppendUvarint(e.order, uint64(i))
}

func appendText[T ~string | ~[]byte](to []byte, text T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// appendColumn appends numbers. The words are sorted by value, so that neighbours begin alike.
func appendColumn(to []byte, numbers []string) []byte {
	index := map[string]int{}
	for _, text := range numbers {
		index[text] = 0
	}
	value := func(text string) float64 {
		v, _ := strconv.ParseFloat(text, 64) // any order will do for what is no number
		return v
	}
	words := slices.SortedFunc(maps.Keys(index), func(a, b string) int {
		return cmp.Or(cmp.Compare(value(a), value(b)), strings.Compare(a, b))
	})
	to = binary.AppendUvarint(to, uint64(len(words)))
	for i, text := range words {
		index[text], to = i, appendText(to, text)
	}
	for at := range width(len(words)) {
		to = binary.AppendUvarint(to, uint64(len(numbers)))
		for _, text := range numbers {
			to = append(to, byte(index[text]>>(8*at)))
		}
	}
	return to
}
