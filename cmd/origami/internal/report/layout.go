package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
)

// The layout of a page is formats of HTML, and not a template: programs that run templates keep every method of their
// types, which makes the module that a browser loads half as large again (docs/decisions/build-and-release.md).

// markup is HTML.
type markup string

// layout is a page while it is written.
type layout struct {
	bytes.Buffer
	err error
}

// put writes a format with arguments. They are texts, whatever is in them, or markup. The formats have them between
// tags and in double quotes.
func (l *layout) put(format string, args ...any) {
	shown := make([]any, len(args))
	for i, a := range args {
		if shown[i] = a; !isMarkup(a) {
			shown[i] = html.EscapeString(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(&l.Buffer, format, shown...)
}

func isMarkup(a any) bool { _, is := a.(markup); return is }

// class is an attribute, unless the class is empty.
func class(name string) markup {
	if name == "" {
		return ""
	}
	return markup(` class="` + html.EscapeString(name) + `"`)
}

// given is an attribute without a value, if it holds.
func given(name string, holds bool) markup {
	if !holds {
		return ""
	}
	return markup(" " + name)
}

// page writes a page. Without a style and a script it links to Assets.
func (l *layout) page(p *Page, style, script markup) {
	l.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
`)
	if script != "" {
		l.put(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; ` +
			`style-src 'unsafe-inline'; img-src data:">` + "\n")
	}
	l.put("<title>%s</title>\n<link rel=\"icon\" href=\"data:,\">\n", p.Title)
	if style != "" {
		l.put("<style>%s</style>", style)
	} else {
		l.put(`<link rel="stylesheet" href="assets/page.css">`)
	}
	l.put(`
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>%s</h1>
`, p.Title)
	if p.Lead != "" {
		l.put("<p class=\"lead\">%s</p>\n", p.Lead)
	}
	if p.Form != nil {
		l.form(p.Form)
	}
	if len(p.Sections) > 2 {
		l.put("<nav aria-label=\"Sections\"><ul>\n")
		for _, s := range p.Sections {
			if s.Title != "" {
				l.put("<li><a href=\"#%s\">%s</a></li>\n", s.ID, s.Title)
			}
		}
		l.put("</ul></nav>\n")
	}
	l.put(`</header>
<main id="main" tabindex="-1">
<noscript><p class="note"><strong>Note:</strong> without JavaScript nothing is shown at a pointer, and the ` +
		`sliders are missing. The tables behind the figures have all their numbers.</p></noscript>
`)
	for _, s := range p.Sections {
		if s.Title == "" {
			l.put("<section id=\"%s\">\n", s.ID)
		} else {
			l.put("<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n", s.ID, s.ID, s.ID, s.Title)
		}
		l.parts(s.Parts)
		l.put("</section>\n")
	}
	l.put("</main>\n<footer>%s</footer>\n", p.Footer)
	if script != "" {
		l.put("<script>%s</script>\n", script)
	} else {
		l.put("<script src=\"assets/page.js\"></script>\n")
	}
	l.put("</body>\n</html>\n")
}

func (l *layout) form(f *Form) {
	l.put("<form method=\"get\" class=\"question\">\n")
	for i := range f.Fields {
		l.field(&f.Fields[i])
	}
	l.put("<button>Ask</button>\n</form>\n")
	if f.Error != "" {
		l.put("<p class=\"error\" role=\"alert\">%s</p>\n", f.Error)
	}
	for i, to := range f.Links {
		l.put("%s<a href=\"%s\">%s</a>", []markup{"<p>", " · "}[min(i, 1)], to.Address, to.Text)
	}
	if len(f.Links) > 0 {
		l.put("</p>\n")
	}
}

func (l *layout) field(f *Field) {
	kind := "field"
	if f.Flag {
		kind = "field flag"
	}
	l.put("<div class=\"%s\"><label for=\"q-%s\">%s</label>\n", kind, f.Name, f.Label)
	switch {
	case len(f.Options) > 0:
		l.put("<select id=\"q-%s\" name=\"%s\">", f.Name, f.Name)
		for _, o := range f.Options {
			text := o
			if o == "" {
				text = f.Hint
			}
			l.put("<option value=\"%s\"%s>%s</option>", o, given("selected", o == f.Value), text)
		}
		l.put("</select>\n")
	case f.Flag:
		l.put("<input type=\"checkbox\" id=\"q-%s\" name=\"%s\" value=\"true\"%s>\n", f.Name, f.Name,
			given("checked", f.Value != ""))
	default:
		more := markup(` size="18" spellcheck="false" autocapitalize="off"`)
		if f.Number {
			more = ` inputmode="numeric" pattern="[0-9]*" title="a whole number" size="7"`
		}
		if len(f.Suggestions) > 0 {
			more += markup(` list="l-` + html.EscapeString(f.Name) + `"`)
		}
		l.put("<input id=\"q-%s\" name=\"%s\" value=\"%s\" placeholder=\"%s\"%s>\n", f.Name, f.Name, f.Value, f.Hint, more)
		if len(f.Suggestions) > 0 {
			l.put("<datalist id=\"l-%s\">", f.Name)
			for _, s := range f.Suggestions {
				l.put("<option value=\"%s\"></option>", s)
			}
			l.put("</datalist>\n")
		}
	}
	l.put("</div>\n")
}

func (l *layout) parts(parts []part) {
	for i := range parts {
		l.part(&parts[i])
	}
}

func (l *layout) part(p *part) {
	if p.Heading != "" {
		l.put("<h3>%s</h3>\n", p.Heading)
	}
	if p.Text != "" {
		l.put("<p>%s</p>\n", p.Text)
	}
	if p.Note != "" {
		l.put("<p class=\"note\"><strong>Note:</strong> %s</p>\n", p.Note)
	}
	if len(p.List) > 0 {
		l.put("<ul>\n")
		for _, line := range p.List {
			l.put("<li>%s</li>\n", line)
		}
		l.put("</ul>\n")
	}
	if len(p.Facts) > 0 {
		l.put("<dl class=\"facts\">\n")
		for _, f := range p.Facts {
			l.put("<div><dt>%s</dt><dd>%s</dd></div>\n", f.Label, f.Value)
		}
		l.put("</dl>\n")
	}
	if p.Table != nil {
		l.table(p.Table)
	}
	if p.Figure != nil {
		l.figure(p.Figure)
	}
	if p.WhatIf != nil {
		l.whatIf(p.WhatIf)
	}
	if p.Choice != nil {
		l.choice(p.Choice)
	}
}

func (l *layout) table(t *grid) {
	l.put("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>\n"+
		"<caption class=\"unseen\">%s</caption>\n<thead><tr>", t.Caption, t.Caption)
	for _, c := range t.Header {
		l.put("<th scope=\"col\"%s>%s</th>", class(c.Class), c.Text)
	}
	l.put("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		l.put("<tr>")
		for _, c := range row {
			l.put("<td%s>%s</td>", class(c.Class), c.Text)
		}
		l.put("</tr>\n")
	}
	l.put("</tbody></table></div>\n")
}

func (l *layout) figure(f *placed) {
	l.put(`<figure class="chart" id="figure-%v">
<figcaption id="caption-%v"><strong>%s</strong> %s</figcaption>
<div class="plot">
%s</div>
`, f.Number, f.Number, f.Title, f.Caption, f.Drawn)
	if f.Table != nil {
		l.put("<details><summary>Table<span class=\"unseen\">: %s</span></summary>\n", f.Title)
		if f.More != "" {
			l.put("<p class=\"faint\">%s</p>\n", f.More)
		}
		l.table(f.Table)
		l.put("</details>\n")
	}
	l.put("</figure>\n")
}

func (l *layout) whatIf(w *placedWhatIf) {
	spec, err := json.Marshal(w.WhatIf) // with < and > escaped, so that nothing in it ends the script
	if err != nil {
		l.err = err
		return
	}
	l.put(`<div class="whatif" id="whatif-%v">
<div class="sliders"></div>
<output class="facts" aria-live="polite"></output>
<script type="application/json">%s</script>
</div>
`, w.Number, markup(spec))
}

func (l *layout) choice(c *choice) {
	l.put("<div class=\"choice\" id=\"%s\">\n<p class=\"chooser\"><label for=\"%s-select\">%s</label>\n"+
		"<select id=\"%s-select\">", c.ID, c.ID, c.Label, c.ID)
	for _, p := range c.Panels {
		l.put("<option value=\"%s\">%s</option>", p.ID, p.Title)
	}
	l.put("</select></p>\n")
	for _, p := range c.Panels {
		l.put("<div class=\"panel\" id=\"%s\" role=\"group\" aria-label=\"%s\"><h3 class=\"panel-title\">%s</h3>\n",
			p.ID, p.Title, p.Title)
		l.parts(p.Parts)
		l.put("</div>\n")
	}
	l.put("</div>\n")
}
