// Package page is the page on which people look at answers: it draws in a browser what commands write as JSON. `origami
// serve` and the site send its files as they are. A report is one file, with the answers in it.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

// Files are index.html and what it loads.
//
//go:embed index.html style.css chart.js views.js page.js
var Files embed.FS

// Names are the addresses of the files, below the address of the page. The page itself has none.
func Names() []string { return []string{"{$}", "style.css", "chart.js", "views.js", "page.js"} }

// Answer is what a command answered.
type Answer struct {
	// Verb is the name of the command, Command its whole line, and Query the same question to a server, empty if it names
	// a file.
	Verb, Command, Query string
	// JSON is a document, a list, or a document per line.
	JSON []byte
}

// mostPlain is the length from which on an answer is kept compressed: a page is sent on.
const mostPlain = 256 << 10

// Write writes the page as one file that needs no other and no network. What is in the answers may be foreign: it is
// data, whatever it looks like. Names are of devices by their ids. The last line of the page is footer.
func Write(w io.Writer, footer string, names map[string]string, answers []Answer) error {
	page, err := text("index.html")
	if err != nil {
		return err
	}
	var hashes [2][]string
	inline := func(name, tag, open, close string, kind int) {
		content, read := text(name)
		if read != nil {
			err = read
		}
		sum := sha256.Sum256([]byte(content))
		hashes[kind] = append(hashes[kind], "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		page = strings.Replace(page, tag, open+content+close, 1)
	}
	inline("style.css", `<link rel="stylesheet" href="style.css">`, "<style>", "</style>", 0)
	for _, name := range []string{"chart.js", "views.js", "page.js"} {
		inline(name, `<script src="`+name+`"></script>`, "<script>", "</script>", 1)
	}
	var data strings.Builder
	if called, broken := json.Marshal(names); broken == nil { // with < escaped
		fmt.Fprintf(&data, "<script type=\"application/json\" id=\"names\">%s</script>\n", called)
	}
	for i := range answers {
		if broken := answers[i].write(&data); broken != nil {
			err = broken
		}
	}
	policy := fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src %s; `+
		`script-src %s; img-src data:">`, strings.Join(hashes[0], " "), strings.Join(hashes[1], " "))
	page = strings.Replace(page, `<html lang="en" data-live>`, `<html lang="en">`, 1)
	page = strings.Replace(page, `<meta charset="utf-8">`, `<meta charset="utf-8">`+"\n"+policy, 1)
	page = strings.Replace(page, `<a href="openapi.json" class="api">API</a>`, "", 1)
	before, after, _ := strings.Cut(page, "<!-- answers -->")
	if head, tail, found := strings.Cut(before, "</footer>"); found {
		before = head + "<br>" + html.EscapeString(footer) + "</footer>" + tail
	}
	if err == nil {
		_, err = io.WriteString(w, before+data.String()+after)
	}
	return err
}

func text(name string) (string, error) {
	content, err := Files.ReadFile(name)
	return string(content), err
}

// write writes an answer as data of a page. The JSON stays as it is, but for <, which is escaped as JSON has it, so
// that nothing in it ends the element.
func (a *Answer) write(w *strings.Builder) error {
	content, form := bytes.ReplaceAll(a.JSON, []byte("<"), []byte(`\u003c`)), "json"
	if len(content) > mostPlain {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = z.Write(a.JSON)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return err
		}
		content, form = []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), "gzip"
	}
	fmt.Fprintf(w, "<script type=\"application/json\" class=\"answer\" data-verb=\"%s\" data-command=\"%s\" "+
		"data-query=\"%s\" data-form=\"%s\">%s</script>\n", html.EscapeString(a.Verb), html.EscapeString(a.Command),
		html.EscapeString(a.Query), form, content)
	return nil
}

// Check reports what is wrong with a text that should be JSON: a document, a list, or a document per line.
func Check(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case err == io.EOF && n > 0:
			return nil
		case err == io.EOF:
			return fmt.Errorf("it is empty")
		case err != nil:
			return err
		}
	}
}
