package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
)

// What describes the answers is what the structs say.
func TestDescriptionsFollowTheStructs(t *testing.T) {
	const root = "../../.."
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if name == "ask/schemas.json.gz" {
			got = ask.Schemas()
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the structs of package ask: run `go generate ./ask` (%v)", name, err)
		}
	}
}

// A field of an answer that C and Python have cannot be deleted, nor can two change places, without an error.
func TestRecordsKeepTheirLayout(t *testing.T) {
	type whole struct {
		Cycles  float64     `json:"cycles" c:"pick.1"`
		Seconds float64     `json:"seconds" c:"pick.2"`
		Ends    *[2]float64 `json:"ends" c:"pick.3=low,high"`
		XCDs    int         `json:"xcds" c:"pick.5"`
	}
	type deleted struct {
		Cycles  float64 `json:"cycles" c:"pick.1"`
		Seconds float64 `json:"seconds" c:"pick.2"`
		XCDs    int     `json:"xcds" c:"pick.5"`
	}
	type twice struct {
		Cycles  float64 `json:"cycles" c:"pick.1"`
		Seconds float64 `json:"seconds" c:"pick.1"`
	}
	g := &generator{}
	if all, err := g.records(reflect.TypeFor[whole]()); err != nil || len(all["pick"]) != 4 {
		t.Errorf("%v, %v", all, err)
	}
	for _, bad := range []reflect.Type{reflect.TypeFor[deleted](), reflect.TypeFor[twice]()} {
		if _, err := g.records(bad); err == nil || !strings.Contains(err.Error(), "its layout would change") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
