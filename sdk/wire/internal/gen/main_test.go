package main

import (
	"bytes"
	"os"
	"testing"
)

// The conversions in the repository are the conversions of today's types.
func TestUpToDate(t *testing.T) {
	want, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../zmessages.go"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("zmessages.go is of other types; run `go generate ./sdk/wire` (%v)", err)
	}
}
