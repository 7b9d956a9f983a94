package page_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/site/page"
)

var script = regexp.MustCompile(`(?s)<script type="application/json" class="answer" data-verb="([^"]*)" ` +
	`data-command="([^"]*)" data-query="[^"]*" data-form="([^"]*)">(.*?)</script>`)

// The JSON of a page is that of the command, byte for byte, whatever is in it and however long it is.
func TestAnswersAreKept(t *testing.T) {
	const evil = `</script><script>alert(1)</script><!--`
	long := []byte(`{"x":"` + strings.Repeat("origami </script> ", 40_000) + `"}` + "\n")
	given := []page.Answer{
		{Verb: "select", Command: "origami select " + evil, JSON: []byte("{\"a\":\"\\u003c\",\"b\":\"é\"}\n{\"c\":1}\n")},
		{Verb: evil, Command: "origami", JSON: []byte(`{"x":"` + evil + `"}`)},
		{Verb: "compare", JSON: long},
	}
	var out bytes.Buffer
	must.Do(t, page.Write(&out, evil, map[string]string{evil: evil}, given))
	found := script.FindAllStringSubmatch(out.String(), -1)
	must.Need(t, len(found) == len(given), "%d answers", len(found))
	for i, f := range found {
		text := []byte(f[4])
		if f[3] == "gzip" {
			packed := must.Get(base64.StdEncoding.DecodeString(f[4]))(t)
			z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
			text = must.Get(io.ReadAll(z))(t)
		}
		want := given[i].JSON
		if f[3] == "json" {
			want = bytes.ReplaceAll(want, []byte("<"), []byte(`\u003c`))
		}
		must.That(t, bytes.Equal(text, want) && html.UnescapeString(f[1]) == given[i].Verb &&
			html.UnescapeString(f[2]) == given[i].Command, "answer %d: %.200q, want %.200q", i, text, want)
	}
	must.That(t, out.Len() <= 256<<10, "the page has %d bytes", out.Len())
	must.That(t, !strings.Contains(out.String(), "<script>alert"), "a script of an answer is one of the page")
}

// A page loads nothing, and its policy lets only its own scripts and its own style run.
func TestPageIsAlone(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, page.Write(&out, "", nil, nil))
	text := out.String()
	found := regexp.MustCompile(`(?:src|href)="(?:[a-z]+\.|/)[^"]*"`).FindAllString(text, -1)
	must.That(t, found == nil, "it loads %s", found)
	inside := 0
	for _, tag := range []string{"style", "script"} {
		for _, part := range regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(text, -1) {
			sum := sha256.Sum256([]byte(part[1]))
			if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(text, "'sha256-"+hash+"'") {
				t.Errorf("the policy does not have a %s that begins with %.60s", tag, part[1])
			}
			inside++
		}
	}
	must.That(t, inside == 4 && !strings.Contains(text, "unsafe"), "%d parts", inside)
}

// What is no JSON is refused.
func TestCheck(t *testing.T) {
	for text, good := range map[string]bool{
		`{"a":1}`: true, "[1,2]\n": true, "{}\n{}\n": true, "": false, " \n": false, "m,n,k": false, `{"a":`: false,
	} {
		err := page.Check([]byte(text))
		must.That(t, (err == nil) == good, "%q: %v", text, err)
	}
}
