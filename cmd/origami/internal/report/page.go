package report

import (
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/origami-gemm/origami/core/printable"
)

// Page is what a reader opens in a browser: text, tables and figures that can be looked into, in light and dark. It
// works as a single file without a network, and from a server. What its methods are given may be foreign.
type Page struct {
	Title, Lead, Footer string
	// Form asks for another page, nil where there is nobody to ask.
	Form     *Form
	Sections []*Section

	figures int
}

// Form are the fields of a question. Its answer is a page at the same address.
type Form struct {
	Fields []Field
	// Error says why the last question has no answer.
	Error string
	// Links lead to more than the page has.
	Links []Link
}

// Link is a text with its address.
type Link struct{ Text, Address string }

// Field is one field of a form.
type Field struct {
	Name, Label, Value string
	// Hint is an example, or what is taken if the field is empty.
	Hint string
	// Options are what can be chosen, empty for text. An option that is empty shows Hint.
	Options []string
	// Suggestions are texts that can be chosen instead of typed.
	Suggestions []string
	// Number says that a whole number is wanted, Flag that the field is a box to tick.
	Number, Flag bool
}

// Section is a part of a page with a heading.
type Section struct {
	ID, Title string
	Parts     []part

	page *Page
}

// part is one of its fields.
type part struct {
	Heading string
	Text    string
	Note    string
	List    []string
	Facts   []Fact
	Table   *grid
	Figure  *placed
	Choice  *choice
	WhatIf  *placedWhatIf
}

// Fact is a labelled value.
type Fact struct{ Label, Value string }

type grid struct {
	Caption string
	Header  []cell
	Rows    [][]cell
}

// cell is one of a table, with the CSS class of its column.
type cell struct{ Text, Class string }

// choice shows one of several panels.
type choice struct {
	ID, Label string
	Panels    []*Section
}

// Section adds a section.
func (p *Page) Section(title string) *Section {
	s := &Section{ID: fmt.Sprintf("s%d", len(p.Sections)+1), Title: printable.Line(title), page: p}
	p.Sections = append(p.Sections, s)
	return s
}

func (s *Section) add(p part) { s.Parts = append(s.Parts, p) }

// number returns a number that no other figure of the page has.
func (s *Section) number() int {
	s.page.figures++
	return s.page.figures
}

// Heading adds a heading below that of the section.
func (s *Section) Heading(text string) { s.add(part{Heading: printable.Line(text)}) }

// Text adds a paragraph.
func (s *Section) Text(text string) { s.add(part{Text: printable.Line(text)}) }

// Note adds a remark that a reader must not miss.
func (s *Section) Note(text string) { s.add(part{Note: printable.Line(text)}) }

// List adds lines as a list.
func (s *Section) List(lines []string) {
	var p part
	for _, line := range lines {
		p.List = append(p.List, printable.Line(line))
	}
	if len(p.List) > 0 {
		s.add(p)
	}
}

// Facts adds labelled values. Those that are empty are left out.
func (s *Section) Facts(facts ...Fact) {
	var p part
	for _, f := range facts {
		if f.Value != "" {
			p.Facts = append(p.Facts, Fact{f.Label, printable.Line(f.Value)})
		}
	}
	s.add(p)
}

// Table adds a table. The caption names it for those who hear the page.
func (s *Section) Table(caption string, header []string, rows [][]string) {
	s.add(part{Table: newTable(caption, header, rows)})
}

// Choice adds panels of which a reader sees one at a time.
func (s *Section) Choice(label string, titles []string) []*Section {
	c := &choice{ID: fmt.Sprintf("%s-c%d", s.ID, s.number()), Label: printable.Line(label)}
	for i, title := range titles {
		c.Panels = append(c.Panels, &Section{ID: fmt.Sprintf("%s-%d", c.ID, i+1), Title: printable.Line(title), page: s.page})
	}
	s.add(part{Choice: c})
	return c.Panels
}

func newTable(caption string, header []string, rows [][]string) *grid {
	t := &grid{Caption: printable.Line(caption)}
	for i, name := range header {
		t.Header = append(t.Header, cell{printable.Line(name), classOf(rows, i)})
	}
	for _, row := range rows {
		cells := slices.Clone(t.Header) // with the class of each column
		for i := range cells {
			cells[i].Text = ""
			if i < len(row) {
				cells[i].Text = printable.Line(row[i])
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// A column with a text longer than longText is broken into lines. A number has a unit at most: "1.2 GHz".
const longText, longNumber = 40, 14

// classOf says how a column is shown: "n" for numbers, "long" for text that is broken into lines, "" for short text.
// The first column names the rows.
func classOf(rows [][]string, column int) string {
	numbers, others := 0, 0
	for _, row := range rows {
		if column >= len(row) {
			continue
		}
		switch text := row[column]; {
		case len(text) > longText:
			return "long"
		case startsWithDigit.MatchString(text) && len(text) <= longNumber:
			numbers++
		case text != "" && text != "–":
			others++
		}
	}
	if column > 0 && numbers > others {
		return "n"
	}
	return ""
}

// startsWithDigit tells numbers from words and from sizes such as 64x64x64.
var startsWithDigit = regexp.MustCompile(`^[<-]?[0-9][0-9.]*( |$)`)

// Assets are the style and the script of a page that a server sends, in the folder assets.
//
//go:embed assets/page.css assets/page.js
var Assets embed.FS

// File writes the page as one file that needs no other.
func (p *Page) File(w io.Writer) error {
	style, err := Assets.ReadFile("assets/page.css")
	if err != nil {
		return err
	}
	script, err := Assets.ReadFile("assets/page.js")
	if err != nil {
		return err
	}
	return p.write(w, markup(style), markup(script))
}

// Served writes the page with links to Assets.
func (p *Page) Served(w io.Writer) error { return p.write(w, "", "") }

func (p *Page) write(w io.Writer, style, script markup) error {
	var l layout
	if l.page(p, style, script); l.err != nil {
		return l.err
	}
	_, err := w.Write(l.Bytes())
	return err
}
