package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
)

// sweeps are the recorded sweeps of the table, by family. All are of one H200, in fp16.
var sweeps = []struct {
	family, folder string
	// of are the parameters whose values the sweep has.
	of []choice
}{
	{"mma", "h200-mma", []choice{tile, blockK, warps, stages}},
	{"mma", "sweeps/split/mma-fit", []choice{split}},
	{"triton", "h200-triton", []choice{tile, blockK, warps, stages}},
	{"triton", "sweeps/split/h200-fit", []choice{split}},
}

// choice is a parameter, and the value of a configuration in it.
type choice struct {
	name string
	of   func(gemm.Config) string
}

var (
	tile   = choice{"MacroTile", func(c gemm.Config) string { return fmt.Sprintf("%d×%d", c.BlockM, c.BlockN) }}
	blockK = choice{"DepthU (`block_k`)", func(c gemm.Config) string { return fmt.Sprint(c.BlockK) }}
	warps  = choice{"WorkGroup (`num_warps`)", func(c gemm.Config) string { return fmt.Sprint(c.NumWarps) }}
	stages = choice{"PrefetchGlobalRead (`num_stages`)", func(c gemm.Config) string { return fmt.Sprint(c.NumStages) }}
	split  = choice{"GlobalSplitU (`split_k`)", func(c gemm.Config) string { return fmt.Sprint(c.SplitK) }}
)

// records is the folder of the data sets from that of go generate.
const records = "../../../nvidia/data/"

// worthOfChoices writes what each choice is worth: how much longer the fastest kernel takes if the parameter has one
// value for all sizes, the best one.
func worthOfChoices() (string, error) {
	var b strings.Builder
	b.WriteString("\n| family | parameter | sizes | best single value | fastest kernel takes longer by | at worst |\n" +
		"| --- | --- | ---: | --- | ---: | ---: |\n")
	for _, s := range sweeps {
		all, err := dataset.Read(s.folder, os.DirFS(records+s.folder))
		if err != nil {
			return "", err
		}
		for _, choice := range s.of {
			value, typical, worst := fixedBest(all, choice)
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %.1f %% | %.0f %% |\n", s.family, choice.name, len(all.Problems()), value,
				100*(typical-1), 100*(worst-1))
		}
	}
	return b.String() + "\n", nil
}

// fixedBest returns the value with the least geometric mean, over all problems, of the fastest time with it ÷ the
// fastest of all, that mean, and the largest of the ratios.
func fixedBest(all *dataset.Dataset, choice choice) (value string, typical, worst float64) {
	type loss struct {
		logs, worst float64
		problems    int
	}
	losses := map[string]loss{}
	var order []string
	for _, p := range all.Problems() {
		best, least := map[string]float64{}, math.Inf(1)
		for _, m := range all.Sweep(p) {
			if m.Status != dataset.OK || m.Library != "" {
				continue
			}
			v, t := choice.of(m.Config), float64(m.Median)
			if was, ok := best[v]; !ok || t < was {
				best[v] = t
			}
			least = min(least, t)
		}
		for v, t := range best {
			l, ok := losses[v]
			if !ok {
				order = append(order, v)
			}
			losses[v] = loss{l.logs + math.Log(t/least), max(l.worst, t/least), l.problems + 1}
		}
	}
	typical = math.Inf(1)
	for _, v := range order {
		l := losses[v]
		mean := math.Exp(l.logs / float64(l.problems))
		if l.problems == len(all.Problems()) && (mean < typical || mean == typical && v < value) {
			value, typical, worst = v, mean, l.worst
		}
	}
	return value, typical, worst
}
