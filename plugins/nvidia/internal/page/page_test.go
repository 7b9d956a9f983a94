package main

import (
	"os"
	"testing"
)

// The page shows the model that is computed.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := fill(string(text)); err != nil || filled != string(text) {
		t.Errorf("%s is not what the model says; run `make generate` (%v)", path, err)
	}
}
