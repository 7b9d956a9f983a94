package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/internal/testing/must"
)

type inner struct {
	Size int `json:"size"`
}

type embedded struct {
	Deep inner `json:"deep"`
}

type outer struct {
	embedded
	Status string           `json:"status"`
	Inner  *inner           `json:"inner,omitempty"`
	List   []inner          `json:"list"`
	Named  map[string]inner `json:"named"`
	Any    any              `json:"any"`
	Raw    json.RawMessage  `json:"raw"`
	Hidden int              `json:"-"`
	Plain  bool
}

func TestUnmarshal(t *testing.T) {
	var v outer
	const good = ` { "status" : "a\"}", "inner":{"size":1} , "list":[ {"size":2},{"size":3}],"named":{"a":{"size":4},` +
		`"A":{"size":5}},"any":{"b":[1,{"b":null}],"B":true},"raw":{"x":1,"X":2},"Plain":true,"deep":{"size":-6.0e0}} `
	must.Do(t, strictjson.Unmarshal([]byte(strings.Replace(good, "-6.0e0", "-6", 1)), &v))
	want := outer{
		embedded: embedded{inner{-6}}, Status: `a"}`, Inner: &inner{1}, List: []inner{{2}, {3}},
		Named: map[string]inner{"a": {4}, "A": {5}}, Plain: true, Raw: json.RawMessage(`{"x":1,"X":2}`),
		Any: map[string]any{"b": []any{1.0, map[string]any{"b": nil}}, "B": true},
	}
	must.That(t, reflect.DeepEqual(v, want), "%+v, want %+v", v, want)
	const typeError = "json: cannot unmarshal number into Go struct field outer.status of type string"
	for text, complaint := range map[string]string{
		`{"status":"a","status":"b"}`:               `the key "status" is there twice`,
		`{"status":"a","stat\u0075s":"b"}`:          `the key "status" is there twice`,
		`{"STATUS":"a"}`:                            `the key "STATUS" is written "status"`,
		`{"plain":true}`:                            `the key "plain" is written "Plain"`,
		`{"inner":{"Size":1}}`:                      `the key "inner.Size" is written "inner.size"`,
		`{"deep":{"size":1,"size":1}}`:              `the key "deep.size" is there twice`,
		`{"list":[{"size":1},{"size":1,"size":2}]}`: `the key "list.size" is there twice`,
		`{"named":{"a":{"size":1},"a":{"size":2}}}`: `the key "named.a" is there twice`,
		`{"named":{"a":{"SIZE":1}}}`:                `the key "named.a.SIZE" is written "named.a.size"`,
		`{"any":{"a":[{"b":1,"b":2}]}}`:             `the key "any.a.b" is there twice`,
		`{"raw":{"a":{"b":1,"b":2}}}`:               `the key "raw.a.b" is there twice`,
		`{"other":1}`:                               `json: unknown field "other"`,
		`{"Hidden":1}`:                              `json: unknown field "Hidden"`,
		`{"status":1}`:                              typeError,
		`{} {}`:                                     `there is more behind it`,
		`{}x`:                                       `there is more behind it`,
		`{"status":`:                                `unexpected EOF`,
	} {
		err := strictjson.Unmarshal([]byte(text), new(outer))
		must.That(t, err != nil && err.Error() == complaint, "%s: %v, want %s", text, err, complaint)
	}
	long := `{"any":{`
	for i := range 100 {
		long += fmt.Sprintf(`"%d":0,`, i)
	}
	for key, twice := range map[string]bool{"7": true, "77": true, "100": false} {
		text := long + `"` + key + `":0}}`
		err := strictjson.Unmarshal([]byte(text), new(outer))
		must.That(t, (err != nil) == twice, "%s after a hundred keys: %v", key, err)
	}
	if err := strictjson.Unmarshal([]byte(`{}{`), new(outer)); !errors.Is(err, strictjson.ErrTrailing) {
		t.Error(err)
	}
}

// What is read strictly is read the same by encoding/json, and a strict reader accepts what encoding/json writes.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `[]`, ` {"status":"a","inner":null}`, `{"any":[[],{},"\\\"",1e9]}`,
		`{"named":{"":{"size":1}}}`, `{"raw":[{"a":1}, {"a":1}]}`, `{"deep":{"size":1},"a`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var strict, lax outer
		if strictjson.Unmarshal(text, &strict) != nil {
			return
		}
		if err := json.Unmarshal(text, &lax); err != nil || !reflect.DeepEqual(strict, lax) {
			t.Fatalf("%s: %+v, and encoding/json reads %+v (%v)", text, strict, lax, err)
		}
		again := must.Get(json.Marshal(strict))(t)
		err := strictjson.Unmarshal(again, &strict)
		must.Need(t, err == nil, "%s becomes %s: %v", text, again, err)
	})
}

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
