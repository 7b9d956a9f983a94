package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// The numbers are spelled out three times here, and nowhere else outside of the messages: in columns, and in the two
// innermost loops, which a loop over columns would make half as fast. TestRandomValuesSurvive has every field.

// columns are the numbers of a list of configurations in the order of gemm.Fields.
func columns(q *pb.Configs) [gemm.NumFields]*[]int64 {
	return [...]*[]int64{&q.BlockM, &q.BlockN, &q.BlockK, &q.GroupM, &q.NumWarps, &q.NumStages, &q.SplitK}
}

func toConfigs(cfgs []gemm.Config) *pb.Configs {
	n := len(cfgs)
	q := &pb.Configs{}
	all := make([]int64, gemm.NumFields*n)
	for i, column := range columns(q) {
		*column = all[i*n : (i+1)*n : (i+1)*n]
	}
	var kernels names
	var axes axisColumns
	for i := range cfgs {
		c := &cfgs[i]
		q.BlockM[i], q.BlockN[i], q.BlockK[i] = int64(c.BlockM), int64(c.BlockN), int64(c.BlockK)
		q.GroupM[i], q.SplitK[i] = int64(c.GroupM), int64(c.SplitK)
		q.NumWarps[i], q.NumStages[i] = int64(c.NumWarps), int64(c.NumStages)
		// The index column appears with the second kernel family; a list of one family does without.
		if k := kernels.index(c.Kernel); k != 0 || q.Kernel != nil {
			if q.Kernel == nil {
				q.Kernel = make([]uint32, i, n)
			}
			q.Kernel = append(q.Kernel, k)
		}
		if c.Axes != (gemm.Axes{}) {
			axes.put(i, n, c.Axes)
		}
	}
	for i := range kernels {
		kernels[i] = valid(kernels[i])
	}
	q.Kernels, q.Axes = kernels, axes
	return q
}

// ConfigMessage returns the message of one configuration, for a caller that speaks the protocol itself.
func ConfigMessage(c gemm.Config) *pb.Configs { return toConfigs([]gemm.Config{c}) }

// axisColumns are the columns of the named axes met so far.
type axisColumns []*pb.AxisColumn

// put enters the axes of the i-th of n configurations.
func (t *axisColumns) put(i, n int, axes gemm.Axes) {
	for name, value := range axes.All() {
		at := slices.IndexFunc(*t, func(c *pb.AxisColumn) bool { return c.Name == name })
		if at < 0 {
			at = len(*t)
			*t = append(*t, &pb.AxisColumn{Name: name, Index: make([]uint32, n)})
		}
		column := (*t)[at]
		values := names(column.Values)
		column.Index[i] = values.index(value) + 1
		column.Values = values
	}
}

func fromConfigs(q *pb.Configs) ([]gemm.Config, error) {
	n := len(q.GetBlockM())
	if n == 0 {
		return nil, nil
	}
	for _, column := range columns(q) {
		if len(*column) != n {
			return nil, fmt.Errorf("configurations: columns of %d and %d elements", n, len(*column))
		}
	}
	if len(q.Kernels) == 0 || len(q.Kernel) != 0 && len(q.Kernel) != n {
		return nil, fmt.Errorf("configurations: %d kernel names and %d indices for %d configurations", len(q.Kernels),
			len(q.Kernel), n)
	}
	cfgs := make([]gemm.Config, n)
	bm, bn, bk, group := q.BlockM[:n], q.BlockN[:n], q.BlockK[:n], q.GroupM[:n]
	warps, stages, split := q.NumWarps[:n], q.NumStages[:n], q.SplitK[:n]
	for i := range cfgs {
		kernel := uint32(0)
		if len(q.Kernel) != 0 {
			kernel = q.Kernel[i]
		}
		if int(kernel) >= len(q.Kernels) {
			return nil, fmt.Errorf("configurations: kernel index %d of %d", kernel, len(q.Kernels))
		}
		cfgs[i] = gemm.Config{
			BlockM: int(bm[i]), BlockN: int(bn[i]), BlockK: int(bk[i]), GroupM: int(group[i]),
			NumWarps: int(warps[i]), NumStages: int(stages[i]), SplitK: int(split[i]),
			Kernel: q.Kernels[kernel],
		}
	}
	return cfgs, fromAxisColumns(cfgs, q.Axes)
}

// fromAxisColumns enters the values on named axes. What a family declares is not known here.
func fromAxisColumns(cfgs []gemm.Config, axes []*pb.AxisColumn) error {
	if len(axes) == 0 {
		return nil
	}
	for _, column := range axes {
		if len(column.GetIndex()) != len(cfgs) {
			return fmt.Errorf("configurations: %d values on the axis %q for %d configurations", len(column.GetIndex()),
				column.GetName(), len(cfgs))
		}
	}
	// Few combinations occur, each of them often.
	known := map[string]gemm.Axes{}
	var key []byte
	var values []gemm.AxisValue
	for i := range cfgs {
		key, values = key[:0], values[:0]
		for _, column := range axes {
			index := column.Index[i]
			key = binary.LittleEndian.AppendUint32(key, index)
			if int(index) > len(column.Values) {
				return fmt.Errorf("configurations: index %d of %d values on the axis %q", index, len(column.Values),
					column.GetName())
			}
			if index > 0 {
				values = append(values, gemm.AxisValue{Name: column.Name, Value: column.Values[index-1]})
			}
		}
		named, ok := known[string(key)]
		if !ok {
			var err error
			if named, err = gemm.NewAxes(values...); err != nil {
				return fmt.Errorf("configuration %d: %w", i, err)
			}
			known[string(key)] = named
		}
		cfgs[i].Axes = named
	}
	return nil
}

// fromAnswered is fromConfigs for an answer about a kernel family, or about all of them if it is empty. Callers use the
// answer without further checks: the kernels are those that were asked for, no size is negative, and the description
// declares every named axis.
func fromAnswered(q *pb.Configs, kernel string, d *arch.Description) ([]gemm.Config, error) {
	for _, name := range q.GetKernels() {
		if kernel != "" && name != kernel {
			return nil, fmt.Errorf("configurations of the kernel family %q, where %q was asked for", name, kernel)
		}
		if !slices.Contains(d.Kernels, name) {
			return nil, fmt.Errorf("configurations of the kernel family %q, which the description does not have", name)
		}
	}
	cfgs, err := fromConfigs(q)
	if err != nil {
		return nil, err
	}
	for i := range cfgs {
		c := &cfgs[i]
		numbers := c.Numbers()
		if slices.Min(numbers[:]) < 0 {
			return nil, fmt.Errorf("configuration %d has a negative size: %s", i, c)
		}
		if c.Axes != (gemm.Axes{}) {
			if err := c.Validate(d.Axes(c.Kernel)...); err != nil {
				return nil, err
			}
		}
	}
	return cfgs, nil
}

func fromConfig(q *pb.Configs) (gemm.Config, error) {
	cfgs, err := fromConfigs(q)
	if err != nil {
		return gemm.Config{}, err
	}
	if len(cfgs) != 1 {
		return gemm.Config{}, fmt.Errorf("%d configurations where one is expected", len(cfgs))
	}
	return cfgs[0], nil
}

// hashConfigs is the SHA-256 that names a list (see ConfigSet in gemm.proto).
func hashConfigs(cfgs []gemm.Config) [sha256.Size]byte {
	b := make([]byte, 0, len(cfgs)*(8*gemm.NumFields+16))
	named := false
	for i := range cfgs {
		c := &cfgs[i]
		for _, v := range c.Numbers() {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		b = appendText(b, valid(c.Kernel))
		named = named || c.Axes != (gemm.Axes{})
	}
	if named {
		b = binary.LittleEndian.AppendUint64(b, math.MaxUint64)
		for i := range cfgs {
			b = appendText(b, cfgs[i].Axes.String())
		}
	}
	return sha256.Sum256(b)
}

// appendText appends the length of a text and its bytes.
func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}
