package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toConfigs(cfgs []gemm.Config) *pb.Configs {
	n := len(cfgs)
	columns := make([]int64, 7*n)
	column := func(i int) []int64 { return columns[i*n : (i+1)*n : (i+1)*n] }
	q := &pb.Configs{
		BlockM: column(0), BlockN: column(1), BlockK: column(2), GroupM: column(3),
		NumWarps: column(4), NumStages: column(5), SplitK: column(6),
	}
	var kernels names
	for i := range cfgs {
		c := &cfgs[i]
		q.BlockM[i], q.BlockN[i], q.BlockK[i], q.GroupM[i] = int64(c.BlockM), int64(c.BlockN), int64(c.BlockK), int64(c.GroupM)
		q.NumWarps[i], q.NumStages[i], q.SplitK[i] = int64(c.NumWarps), int64(c.NumStages), int64(c.SplitK)
		// The index column appears with the second kernel family; a list of one family does without.
		if k := kernels.index(c.Kernel); k != 0 || q.Kernel != nil {
			if q.Kernel == nil {
				q.Kernel = make([]uint32, i, n)
			}
			q.Kernel = append(q.Kernel, k)
		}
	}
	for i := range kernels {
		kernels[i] = valid(kernels[i])
	}
	q.Kernels = kernels
	return q
}

func fromConfigs(q *pb.Configs) ([]gemm.Config, error) {
	n := len(q.GetBlockM())
	if n == 0 {
		return nil, nil
	}
	for _, column := range [][]int64{q.BlockN, q.BlockK, q.GroupM, q.NumWarps, q.NumStages, q.SplitK} {
		if len(column) != n {
			return nil, fmt.Errorf("configurations: columns of %d and %d elements", n, len(column))
		}
	}
	if len(q.Kernels) == 0 || len(q.Kernel) != 0 && len(q.Kernel) != n {
		return nil, fmt.Errorf("configurations: %d kernel names and %d indices for %d configurations", len(q.Kernels), len(q.Kernel), n)
	}
	cfgs := make([]gemm.Config, n)
	for i := range cfgs {
		kernel := uint32(0)
		if len(q.Kernel) != 0 {
			kernel = q.Kernel[i]
		}
		if int(kernel) >= len(q.Kernels) {
			return nil, fmt.Errorf("configurations: kernel index %d of %d", kernel, len(q.Kernels))
		}
		cfgs[i] = gemm.Config{
			BlockM: int(q.BlockM[i]), BlockN: int(q.BlockN[i]), BlockK: int(q.BlockK[i]), GroupM: int(q.GroupM[i]),
			NumWarps: int(q.NumWarps[i]), NumStages: int(q.NumStages[i]), SplitK: int(q.SplitK[i]), Kernel: q.Kernels[kernel],
		}
	}
	return cfgs, nil
}

// fromAnswered is fromConfigs for what a plugin answers, which a caller may take as it is.
func fromAnswered(q *pb.Configs) ([]gemm.Config, error) {
	cfgs, err := fromConfigs(q)
	for i := range cfgs {
		c := &cfgs[i]
		if min(c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK) < 0 {
			return nil, fmt.Errorf("configuration %d has a negative size: %s", i, c)
		}
	}
	return cfgs, err
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
	var b bytes.Buffer
	var number [8]byte
	for i := range cfgs {
		c := &cfgs[i]
		kernel := valid(c.Kernel)
		for _, v := range [...]int{c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK, len(kernel)} {
			binary.LittleEndian.PutUint64(number[:], uint64(v))
			b.Write(number[:])
		}
		b.WriteString(kernel)
	}
	return sha256.Sum256(b.Bytes())
}
