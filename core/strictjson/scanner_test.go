package strictjson_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A list of texts and numbers, and where a scanner stops in one that is wrong.
func TestScanner(t *testing.T) {
	for text, want := range map[string]string{
		` [ "a" , 1.5 ,"b\n"] `: "a 1.5 b\n ",
		`[]`:                    "",
		`{}`:                    `: it is no list: "{}"`,
		``:                      `: it is no list: ""`,
		`["a" "b"]`:             `: it is no comma: "\"b\"]"`,
		`["a`:                   `: it is no end of a text: ""`,
		"[\"a\tb\"]":            `: it is no end of a text: "\tb\"]"`,
		`["\x"]`:                ": it has an unknown escape",
		`[true]`:                `: it is no text: "true]"`,
	} {
		s, got := strictjson.Scanner{Text: text}, ""
		err := s.Each('[', ']', func(int) error {
			word, err := "", error(nil)
			if c := s.Next(); c >= '0' && c <= '9' {
				word = s.Bare()
			} else {
				word, _, err = s.Quoted()
			}
			got += word + " "
			return err
		})
		if err != nil {
			got = err.Error()
		}
		must.That(t, got == want, "%q: %q, want %q", text, got, want)
	}
	for _, s := range []string{"0", "-0", "10", "01", "1.", "1.5", "0.5e1", "0e1", "00", "-", "1e5", ".5", "+1", "0x1"} {
		if _, err := strconv.ParseFloat(s, 64); err == nil && strictjson.IsNumber(s) != json.Valid([]byte(s)) {
			t.Errorf("%s: a number is %v", s, strictjson.IsNumber(s))
		}
	}
}
