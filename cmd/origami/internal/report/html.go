package report

import (
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/origami-gemm/origami/core/printable"
)

// HTML is a page that needs no other file. What its methods are given may be foreign.
type HTML struct {
	Title, Footer string
	Parts         []part
}

// part is one of its fields.
type part struct {
	Heading string
	List    []string
	Header  []cell
	Rows    [][]cell
	Caption string
	Figure  template.HTML
}

// cell is one of a table, with the CSS class of its column.
type cell struct{ Text, Class string }

// Heading writes a heading.
func (h *HTML) Heading(text string) { h.Parts = append(h.Parts, part{Heading: printable.Line(text)}) }

// List writes lines as a list.
func (h *HTML) List(lines []string) {
	p := part{}
	for _, line := range lines {
		p.List = append(p.List, printable.Line(line))
	}
	h.Parts = append(h.Parts, p)
}

// Table writes a table.
func (h *HTML) Table(header []string, rows [][]string) {
	p := part{}
	for i, name := range header {
		p.Header = append(p.Header, cell{printable.Line(name), classOf(rows, i)})
	}
	for _, row := range rows {
		cells := make([]cell, len(row))
		for i, text := range row {
			cells[i] = cell{printable.Line(text), p.Header[i].Class}
		}
		p.Rows = append(p.Rows, cells)
	}
	h.Parts = append(h.Parts, p)
}

// A column with a text longer than longText is broken into lines. A number has a unit at most: "1.2 GHz".
const longText, longNumber = 40, 14

// classOf says how a column is shown: "n" for numbers, "long" for text that is broken into lines, "" for short text.
// The first column names the rows.
func classOf(rows [][]string, column int) string {
	numbers, others := 0, 0
	for _, row := range rows {
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

// Figure shows an SVG file of the folder.
func (h *HTML) Figure(caption string, f Folder, files Files) error {
	path := filepath.Join(string(f), files.SVG)
	data, err := os.ReadFile(path)
	if err != nil {
		return Unwritable(path, err)
	}
	svg := string(data)
	if i := strings.Index(svg, "<svg"); i >= 0 {
		svg = svg[i:] // what is before it belongs to a file
	}
	// The figure is our own: its texts were escaped when it was drawn.
	h.Parts = append(h.Parts, part{Caption: printable.Line(caption), Figure: template.HTML(svg)}) //nolint:gosec // above
	return nil
}

// HTML writes a page into a file.
func (f Folder) HTML(name string, h *HTML) (err error) {
	path := filepath.Join(string(f), name)
	file, err := os.Create(path)
	if err != nil {
		return Unwritable(path, err)
	}
	defer func() {
		if e := file.Close(); err == nil && e != nil {
			err = Unwritable(path, e)
		}
	}()
	if err := page.Execute(file, h); err != nil {
		return Unwritable(path, err)
	}
	return nil
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --text: #222; --faint: #555; --line: #ddd; --strong: #888; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --faint: #aaa; --line: #3a3d42; --strong: #777; --page: #17191c; }
}
body { font: 15px/1.5 "Liberation Sans", Arial, Helvetica, sans-serif; color: var(--text); background: var(--page);
  max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .25em .7em; text-align: left; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--strong); }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.long { white-space: normal; min-width: 22em; }
figure { margin: 1.5em 0; }
figure svg { display: block; width: 100%; min-width: 640px; height: auto; background: #fff; border-radius: 4px; }
figcaption, .footer { color: var(--faint); font-size: 13px; }
@media print { body { margin: 0; max-width: none; color: #222; background: #fff; } figure { break-inside: avoid; } }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{range .Parts}}{{if .Heading}}<h2>{{.Heading}}</h2>
{{end}}{{if .List}}<ul>
{{range .List}}<li>{{.}}</li>
{{end}}</ul>
{{end}}{{if .Header}}<div class="wide"><table>
<thead><tr>{{range .Header}}<th{{with .Class}} class="{{.}}"{{end}}>{{.Text}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range .}}<td{{with .Class}} class="{{.}}"{{end}}>{{.Text}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{if .Figure}}<figure><div class="wide">{{.Figure}}</div><figcaption>{{.Caption}}</figcaption></figure>
{{end}}{{end}}<p class="footer">{{.Footer}}</p>
</body>
</html>
`))
