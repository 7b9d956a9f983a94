package main

import "testing"

// A row of AMD's logic is turned over to rows and columns of C, and its speed into a time. Rows whose part, unit or
// batch does not say a time are left out, and those of a harness of their own are marked.
func TestTunedRow(t *testing.T) {
	row := func(with map[string]string) map[string]string {
		of := map[string]string{
			"arch": "gfx942", "cus": "304", "dtype": "fp16", "out": "H", "layout": "TN",
			"m": "512", "n": "256", "k": "128",
			"batch": "1", "value": "50", "unit": "pct_mi300x", "set": "stream-k", "source": "1",
		}
		for name, v := range with {
			of[name] = v
		}
		out, err := tunedRow(of)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := row(nil)
	// 2 * 512 * 256 * 128 FLOP at half of 304 * 2048 FLOP/cycle * 2.1 GHz
	for name, want := range map[string]string{
		"device": "MI300X", "m": "256", "n": "512", "k": "128", "trans_a": "0", "trans_b": "1", "release": "early",
		"out_dtype": "fp16", "library": "hipBLASLt stream-K", "time_us": "0.05132832080200501", "doubt": "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, left := range []map[string]string{
		{"batch": "2"}, {"cus": "80"}, {"unit": "pct_peak"}, {"arch": "gfx900", "cus": "64"}, {"out": "F8"},
		{"arch": "gfx90a", "cus": "104", "set": "hipblaslt"},
	} {
		if out := row(left); out != nil {
			t.Errorf("%v is kept as %v", left, out)
		}
	}
	die := map[string]string{"arch": "gfx90a", "cus": "110", "unit": "pct_peak", "set": "rocblas", "value": "50"}
	if short := row(die); short["doubt"] != "other-harness" || short["release"] != "" {
		t.Errorf("a short time of a die of the MI250X: %v", short)
	}
	die["m"], die["n"], die["k"] = "8192", "8192", "8192"
	if long := row(die); long["doubt"] != "" {
		t.Errorf("a long time of it: %v", long)
	}
	if _, err := tunedRow(map[string]string{
		"arch": "gfx942", "cus": "304", "layout": "TN", "batch": "1", "m": "x", "out": "H",
	}); err == nil {
		t.Error("a size that is no number is taken")
	}
}
