package main

// #cgo linux LDFLAGS: -ldl
// #include "launch.h"
import "C"

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
)

// The numbers of origami.h are those of the Go packages. This compiles only if the last ones agree.
var (
	_ [0]struct{} = [unsafe.Sizeof(C.origami_pick{}) - 200]struct{}{} // since version 3 of the interface
	_ [0]struct{} = [unsafe.Sizeof(C.origami_regret{}) - 16]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(C.origami_kernel{}) - 1208]struct{}{} // since version 4
	_ [0]struct{} = [unsafe.Sizeof(C.origami_band{}) - 280]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(C.origami_range{}) - 32]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(C.origami_same{}) - 504]struct{}{}
	_ [0]struct{} = [C.ORIGAMI_SILU_GATED - uint8(gemm.GatedSiLU)]struct{}{}
	_ [0]struct{} = [C.ORIGAMI_INPUT - 1 - uint8(diag.Input)]struct{}{}
	_ [0]struct{} = [C.ORIGAMI_DEVICE - 1 - uint8(diag.Device)]struct{}{}
)

var opened handles

//export origami_go_open
func origami_go_open(request *C.char, handle *C.origami_model, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if request == nil || handle == nil {
			return isNull("request or model")
		}
		*handle = 0
		m, err := open([]byte(C.GoString(request)))
		if err == nil {
			*handle = C.origami_model(opened.add(m))
		}
		return err
	})
}

//export origami_go_select
func origami_go_select(handle C.origami_model, problem *C.origami_problem, pick *C.origami_pick,
	text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || pick == nil {
			return isNull("problem or pick")
		}
		*pick = C.origami_pick{}
		return with(handle, func(m *model) error { return m.selectInto(problem, pick) })
	})
}

//export origami_go_select_many
func origami_go_select_many(handle C.origami_model, problems *C.origami_problem, count C.size_t,
	picks *C.origami_pick, status *C.int32_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if count == 0 {
			return nil
		}
		if count > mostProblems {
			return diag.Inputf("count is %d", uint64(count)).Do("ask about at most %d problems at once", mostProblems)
		}
		if problems == nil || picks == nil || status == nil {
			return isNull("problems, picks or status")
		}
		return with(handle, func(m *model) (first error) {
			in, out, codes := unsafe.Slice(problems, count), unsafe.Slice(picks, count), unsafe.Slice(status, count)
			for i := range in {
				out[i] = C.origami_pick{}
				err := m.selectInto(&in[i], &out[i])
				if codes[i] = code(err); err != nil && first == nil {
					first = diag.Within(fmt.Sprintf("problem %d", i), err)
				}
			}
			return first
		})
	})
}

// mostProblems limits the problems of a call. That many are larger than any memory.
const mostProblems = 1 << 32

//export origami_go_rank
func origami_go_rank(handle C.origami_model, problem *C.origami_problem, picks *C.origami_pick, count *C.size_t,
	text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || count == nil || picks == nil && *count > 0 {
			return isNull("problem, picks or count")
		}
		room := *count
		*count = 0
		return with(handle, func(m *model) error {
			p, err := problemOf(problem)
			if err != nil || room == 0 {
				return err
			}
			return m.rank(p, int(min(room, maxRank)), func(entries []selector.Entry) {
				for i, out := 0, unsafe.Slice(picks, len(entries)); i < len(out); i++ {
					out[i] = m.pick(&p, &entries[i])
				}
				*count = C.size_t(len(entries))
			})
		})
	})
}

//export origami_go_rank_among
func origami_go_rank_among(handle C.origami_model, problem *C.origami_problem, configs *C.origami_pick, given C.size_t,
	picks *C.origami_pick, count *C.size_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || count == nil || picks == nil && *count > 0 || configs == nil && given > 0 {
			return isNull("problem, configs, picks or count")
		}
		room := *count
		*count = 0
		if given == 0 || given > maxConfigs {
			return diag.Inputf("there are %d configurations", uint64(given)).Do("give 1 to %d", maxConfigs)
		}
		return with(handle, func(m *model) error {
			p, err := problemOf(problem)
			if err != nil || room == 0 {
				return err
			}
			list := make([]gemm.Config, given)
			for i, c := 0, unsafe.Slice(configs, given); i < len(list); i++ {
				if list[i], err = m.configOf(&c[i]); err != nil {
					return diag.Within(fmt.Sprintf("configuration %d", i), err)
				}
			}
			r, err := m.rankAmong(p, list, int(min(room, maxRank)))
			if err != nil {
				return err
			}
			for i, out := 0, unsafe.Slice(picks, len(r.Entries)); i < len(out); i++ {
				answer := r.Pick(&r.Entries[i])
				out[i] = pickOf(&answer)
			}
			*count = C.size_t(len(r.Entries))
			return nil
		})
	})
}

// maxConfigs limits the configurations of a caller. It is more than any space has.
const maxConfigs = 1 << 20

//export origami_go_answer
func origami_go_answer(handle C.origami_model, problem *C.origami_problem, into *C.char, room C.size_t,
	length *C.size_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil {
			return isNull("problem")
		}
		return with(handle, func(m *model) error {
			p, err := problemOf(problem)
			if err != nil {
				return err
			}
			return write(into, room, length, func() ([]byte, error) { return m.answer(p) })
		})
	})
}

//export origami_go_compare
func origami_go_compare(handles *C.origami_model, sides C.size_t, problems *C.origami_problem, count C.size_t,
	into *C.char, room C.size_t, length *C.size_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if handles == nil || problems == nil {
			return isNull("models or problems")
		}
		if sides < 2 || sides > maxSides || count < 1 || count > maxCompared {
			return diag.Inputf("there are %d models and %d problems", uint64(sides), uint64(count)).
				Do("give 2 to %d models and 1 to %d problems", maxSides, maxCompared)
		}
		models := make([]*model, sides)
		for i, handle := range unsafe.Slice(handles, sides) {
			var err error
			if models[i], err = opened.find(uint64(handle)); err != nil {
				return diag.Within(fmt.Sprintf("model %d", i), err)
			}
		}
		list := make([]gemm.Problem, count)
		for i, c := 0, unsafe.Slice(problems, count); i < len(list); i++ {
			var err error
			if list[i], err = problemOf(&c[i]); err == nil {
				err = list[i].Validate()
			}
			if err != nil {
				return diag.Within(fmt.Sprintf("problem %d", i), err)
			}
		}
		return write(into, room, length, func() ([]byte, error) { return compare(models, list) })
	})
}

// The most models and problems that origami_compare takes: their answers are in memory at once.
const (
	maxSides    = 64
	maxCompared = 1 << 14
)

// maxRank limits the number of entries. It is larger than any space.
const maxRank = 1 << 30

//export origami_go_expected_regret
func origami_go_expected_regret(handle C.origami_model, problem *C.origami_problem, regret *C.origami_regret,
	text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || regret == nil {
			return isNull("problem or regret")
		}
		*regret = C.origami_regret{}
		return with(handle, func(m *model) error {
			p, err := problemOf(problem)
			if err != nil {
				return err
			}
			expected, err := m.expectedRegret(p)
			if err == nil {
				answer := m.ranking(&p, expected).Pick(&ask.Entry{})
				*regret = regretOf(&answer)
			}
			return err
		})
	})
}

//export origami_go_generate
func origami_go_generate(handle C.origami_model, problem *C.origami_problem, config *C.origami_pick,
	kernel *C.origami_kernel, into *C.char, room C.size_t, length *C.size_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || kernel == nil {
			return isNull("problem or kernel")
		}
		*kernel = C.origami_kernel{}
		return with(handle, func(m *model) error {
			l, err := m.generate(problem, config, kernel)
			if err != nil {
				return err
			}
			return write(into, room, length, func() ([]byte, error) { return []byte(l.PTX), nil })
		})
	})
}

//export origami_go_load
func origami_go_load(handle C.origami_model, problem *C.origami_problem, config *C.origami_pick, device C.int32_t,
	plan **C.origami_plan, kernel *C.origami_kernel, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || plan == nil {
			return isNull("problem or plan")
		}
		*plan = nil
		return with(handle, func(m *model) error {
			var record C.origami_kernel
			l, err := m.generate(problem, config, &record)
			if err != nil {
				return err
			}
			if kernel != nil {
				*kernel = record
			}
			function, err := loaded.load(l, m.description.Arch, int32(device))
			if err != nil {
				return err
			}
			return driven(func(why *C.char, room C.size_t) C.int32_t {
				return C.origami_cuda_plan(device, function, &record, plan, why, room)
			})
		})
	})
}

//export origami_go_bands
func origami_go_bands(handle, library C.origami_model, problem *C.origami_problem, sizes *C.origami_range,
	bands *C.origami_band, count *C.size_t, same *C.origami_same, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		if problem == nil || count == nil || bands == nil && *count > 0 || sizes == nil ||
			sizes.list == nil && sizes.count > 0 {
			return isNull("problem, range, bands or count")
		}
		room := *count
		*count = 0
		if same != nil {
			*same = C.origami_same{}
		}
		return with(handle, func(m *model) error {
			p, err := problemOf(problem)
			if err != nil {
				return err
			}
			var other *model
			if library != 0 {
				if other, err = opened.find(uint64(library)); err != nil {
					return err
				}
			}
			list, err := m.bands(p, rangeOf(sizes), other)
			if err != nil {
				return err
			}
			if same != nil {
				if *same, err = m.same(p, list); err != nil {
					return err
				}
			}
			if *count = C.size_t(len(list.Bands)); *count > room {
				return nil
			}
			for i, out := 0, unsafe.Slice(bands, len(list.Bands)); i < len(out); i++ {
				if out[i], err = m.band(p, other, &list.Bands[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

//export origami_go_describe
func origami_go_describe(handle C.origami_model, into *C.char, room C.size_t, length *C.size_t,
	text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error {
		return with(handle, func(m *model) error { return write(into, room, length, m.describe) })
	})
}

//export origami_go_list
func origami_go_list(into *C.char, room C.size_t, length *C.size_t, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error { return write(into, room, length, list) })
}

//export origami_go_close
func origami_go_close(handle C.origami_model, text *C.char, size C.size_t) C.int32_t {
	return guard(text, size, func() error { return opened.remove(uint64(handle)) })
}

// with calls f with an open model.
func with(handle C.origami_model, f func(*model) error) error {
	m, err := opened.find(uint64(handle))
	if err != nil {
		return err
	}
	return f(m)
}

// guard answers a call. The error or panic of f becomes a status and an error text.
func guard(text *C.char, size C.size_t, f func() error) (status C.int32_t) {
	defer func() {
		if r := recover(); r != nil {
			status = fail(text, size, fmt.Errorf("a bug in liborigami: %v; report it", r))
		}
	}()
	return fail(text, size, f())
}

// fail writes an error's text, and returns its status.
func fail(text *C.char, size C.size_t, err error) C.int32_t {
	message := ""
	if err != nil {
		message = diag.Line(err)
	}
	copyText(text, size, message)
	return code(err)
}

// code is the status of an error, as the exit codes of the command line.
func code(err error) C.int32_t {
	if err == nil {
		return C.ORIGAMI_OK
	}
	return C.int32_t(diag.KindOf(err)) + C.ORIGAMI_INTERNAL
}

// copyText copies as much of a text as fits into a C buffer, with a final 0. It cuts between characters, and touches no
// more of the buffer than it needs: size may be larger than the buffer.
func copyText[T string | []byte](to *C.char, size C.size_t, text T) {
	if to == nil || size == 0 {
		return
	}
	n := len(text)
	if C.size_t(n) >= size {
		for n = int(size - 1); n > 0 && !utf8.RuneStart(text[n]); n-- {
		}
	}
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(to)), n+1)
	buffer[copy(buffer, text[:n])] = 0
}

// write answers with a text.
func write(into *C.char, room C.size_t, length *C.size_t, text func() ([]byte, error)) error {
	if length == nil {
		return isNull("length")
	}
	*length = 0
	out, err := text()
	if err != nil {
		return err
	}
	copyText(into, room, out)
	*length = C.size_t(len(out))
	return nil
}

func isNull(what string) error {
	return diag.Inputf("%s is NULL", what).Do("pass memory for it")
}

// problemOf converts a problem. The selector checks the sizes.
func problemOf(c *C.origami_problem) (gemm.Problem, error) {
	if max(c.trans_a, c.trans_b, c.scales) > 1 || c.bias > C.ORIGAMI_BIAS_FP32 || c.adds > C.ORIGAMI_ADDS_LAST {
		return gemm.Problem{}, diag.Inputf("trans_a, trans_b or scales is neither 0 nor 1, or bias no ORIGAMI_BIAS_..., or " +
			"adds no ORIGAMI_ADDS_...").
			Do("set all of origami_problem")
	}
	in, out := gemm.DType(c.dtype), gemm.DType(c.out_dtype)
	if C.int32_t(in) != c.dtype || !in.Operand() {
		return gemm.Problem{}, diag.Inputf("there is no dtype %d", int(c.dtype)).
			Do("use one of %s", enumerators(gemm.DTypes()))
	}
	if C.int32_t(out) != c.out_dtype || out != 0 && !out.Known() {
		return gemm.Problem{}, diag.Inputf("there is no out_dtype %d", int(c.out_dtype)).
			Do("use 0, or one of %s", enumerators(gemm.OutputTypes()))
	}
	p := gemm.Problem{
		M: int(c.m), N: int(c.n), K: int(c.k), Batch: int(c.batch),
		DType: in, Out: out,
		LDA: int(c.lda), LDB: int(c.ldb), LDC: int(c.ldc),
		Epilogue: gemm.Epilogue{Scales: c.scales == 1, Bias: c.bias != 0, Activation: gemm.Activation(c.activation),
			Residual: c.adds == C.ORIGAMI_ADDS_LAST},
		AlignA: uint8(c.align_a), AlignB: uint8(c.align_b), AlignC: uint8(c.align_c),
	}
	p.SetTrans(c.trans_a == 1, c.trans_b == 1)
	if c.bias == C.ORIGAMI_BIAS_FP32 {
		p.Epilogue.BiasType = gemm.FP32
	}
	if c.adds == C.ORIGAMI_ADDS_C {
		p.Beta = 1
	}
	var err error
	p.Groups, err = groupsOf(c.groups, c.group_count)
	return p.Canonical(), err
}

// enumerators lists the names of types in origami.h.
func enumerators(types []gemm.DType) string {
	return "ORIGAMI_" + strings.ReplaceAll(strings.ToUpper(gemm.TypeNames(types)), ", ", ", ORIGAMI_")
}

// groupsOf reads the rows of each group.
func groupsOf(rows *C.int64_t, count C.uint64_t) (gemm.Groups, error) {
	if count == 0 {
		return gemm.Groups{}, nil
	}
	if rows == nil {
		return gemm.Groups{}, isNull("groups")
	}
	if count > gemm.MaxGroups {
		return gemm.Groups{}, diag.Inputf("group_count is %d", uint64(count)).Do("give at most %d groups", gemm.MaxGroups)
	}
	var list [gemm.MaxGroups]int
	for i, v := range unsafe.Slice(rows, count) {
		list[i] = int(v)
	}
	return gemm.NewGroups(list[:count]...)
}

// selectInto answers for one problem.
func (m *model) selectInto(problem *C.origami_problem, pick *C.origami_pick) error {
	p, err := problemOf(problem)
	if err != nil {
		return err
	}
	e, err := m.selectOne(p)
	if err == nil {
		*pick = m.pick(&p, &e)
	}
	return err
}

// pick converts an entry.
func (m *model) pick(p *gemm.Problem, e *selector.Entry) C.origami_pick {
	answer := m.ranking(p, nil).Pick(&ask.Entry{Config: e.Config, Estimate: e.Estimate, Mapping: e.Mapping})
	return pickOf(&answer)
}
