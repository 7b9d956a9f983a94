package main

import (
	"fmt"
	"slices"
	"strconv"
)

// tunedParts are the parts of plugins/amd-ref/data, by architecture and CUs. Left out are 38 and 228 CUs, which are
// parts of a GPU or an MI300A, and 80 CUs, whose fp32 exceeds the peak of an MI308X by 12 %, so that they ran at a
// higher clock or are a part of an MI300X. The rows of gfx900, and those of hipBLASLt on gfx90a, are in the other
// tables.
var tunedParts = map[string]string{"gfx942 304": "MI300X", "gfx90a 110": "MI250X-GCD", "gfx90a 104": "MI210"}

var (
	tunedLibraries = map[string]string{"stream-k": "hipBLASLt stream-K", "hipblaslt": "hipBLASLt", "rocblas": "rocBLAS"}
	tunedOut       = map[string]string{"H": "fp16", "B": "bf16", "S": "fp32", "": "fp32"}
)

// flopPerCycle are those of a CU, by architecture and type (instruction sets).
var flopPerCycle = map[string]float64{
	"gfx90a fp16": 1024, "gfx90a bf16": 1024, "gfx90a fp32": 256,
	"gfx942 fp16": 2048, "gfx942 bf16": 2048, "gfx942 fp32": 256,
}

// clocks90a are those by which per cent of gfx90a's peak are a speed, in Hz. They are not recorded. The sizes that are
// recorded in both units say 1.35 GHz (fp16), 1.48 (fp32) and 1.55 (bf16); of bf16, reads would then exceed the peak of
// DRAM by 12 %, and at 1.35 they reach 0.97 of it.
var clocks90a = map[string]float64{"fp16": 1.35e9, "bf16": 1.35e9, "fp32": 1.48e9}

// least90a is from which time on rocBLAS's rows of gfx90a count, in s. Its harness adds up to 16 µs, not to all:
// 448x448x256 takes 5.5 µs on 104 CUs and 15.1 on 110, 1024x1280x2 21.0 and 4.5.
const least90a = 100e-6

// otherHarness are files of one to four sizes, by the number in plugins/amd-ref/data/sources.csv.gz. In them 128x1x128
// takes 27 to 32 µs, in all others 128x128x128 takes 3.5.
var otherHarness = []string{"843", "1316", "1414", "1418", "1423", "1431"}

// tunedRow returns a row of plugins/amd-ref/data as the tables have it, and nil if its speed or part is not known.
func tunedRow(of map[string]string) (map[string]string, error) {
	number := func(name string) (v float64, err error) {
		if v, err = strconv.ParseFloat(of[name], 64); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		return v, nil
	}
	part, known := tunedParts[of["arch"]+" "+of["cus"]]
	out, also := tunedOut[of["out"]]
	copied := of["arch"] == "gfx90a" && of["set"] == "hipblaslt"
	if !known || !also || copied || of["batch"] != "1" {
		return nil, nil
	}
	var sizes [3]float64
	for i, name := range []string{"m", "n", "k"} {
		var err error
		if sizes[i], err = number(name); err != nil {
			return nil, err
		}
	}
	value, err := number("value")
	if err != nil {
		return nil, err
	}
	speed, rate := 0.0, flopPerCycle[of["arch"]+" "+of["dtype"]]
	switch of["unit"] {
	case "gflops":
		speed = value * 1e9
	case "pct_mi300x": // of 304 CUs at 2.1 GHz
		speed = value / 100 * rate * 304 * 2.1e9
	default:
		if of["arch"] != "gfx90a" { // the clock of gfx942's is known to 13 % only
			return nil, nil
		}
		cus, err := number("cus")
		if err != nil {
			return nil, err
		}
		speed = value / 100 * rate * cus * clocks90a[of["dtype"]]
	}
	if speed <= 0 {
		return nil, fmt.Errorf("no speed of %s", of["dtype"])
	}
	seconds := 2 * sizes[0] * sizes[1] * sizes[2] / speed
	row := map[string]string{
		"source": "amd-tuned", "device": part, "dtype": of["dtype"], "out_dtype": out, "figures": "1",
		"library": tunedLibraries[of["set"]],
		// By columns, C is N x M of what it is by rows, and A is B.
		"m": of["n"], "n": of["m"], "k": of["k"],
		"trans_a": flag(of["layout"][1] == 'T'), "trans_b": flag(of["layout"][0] == 'T'),
		"time_us": strconv.FormatFloat(1e6*seconds, 'g', -1, 64),
	}
	if of["arch"] == "gfx942" { // libraries to October 2024, of GPUs of December 2023
		row["release"] = "early"
	}
	host := of["set"] == "hipblaslt" && slices.Contains(otherHarness, of["source"])
	if host || of["arch"] == "gfx90a" && seconds < least90a {
		row["doubt"] = "other-harness"
	}
	return row, nil
}

func flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}
