// Package wire puts the interfaces of core/arch and core/exec on gRPC: the client, the server, and the conversions
// between core types and protobuf, each in its own file. Host code and plugin code see only the plain interfaces.
//
// The process of an architecture plugin is a cache: whatever it holds, open architectures and configuration lists, is
// named by its content and can be sent again. The client does so when the plugin says that something is missing, so a
// restarted plugin carries on where the old one stopped, and no caller notices. The process of an executor plugin
// holds compiled kernels, which are gone when it is; the client says so and leaves it to its caller to compile again.
package wire

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// APIVersions are the versions of the API, the meaning of the messages, that this package implements, in their order.
// Host and plugin exchange their lists in Info and use the highest version that both have; without one the host skips
// the plugin.
//
//	1.0.0  the first: architectures
//	1.1.0  executors; architectures of live devices
//	1.2.0  named axes of configurations; unused parameters of a description
//	1.3.0  output types, leading dimensions, alignments, groups, nests, alpha, beta and epilogues of problems;
//	       element types after int8;
//	       types of a kernel family; what a model was fitted to and checked on, and whether it ranks only;
//	       programs that an executor runs; device files of a user's;
//	       constants with bounds, microbenchmarks and ladders of a plugin
var APIVersions = []string{"1.0.0", API11, API12, API13}

// API versions after the first, see APIVersions.
const (
	API11 = "1.1.0"
	API12 = "1.2.0"
	API13 = "1.3.0"
)

// Requires returns the API version that a plugin must speak to understand a request, and what it is in the request that
// an older plugin does not know and would overlook. For most requests that is no version in particular.
func Requires(request any) (version, what string) {
	if !problemsInAPI12(request) {
		return API13, "neither output types nor leading dimensions nor alignments nor groups nor nests " +
			"nor alpha, beta and epilogues of problems" + laterTypes()
	}
	if q, ok := request.(*pb.OpenRequest); ok {
		if q.DeviceFile != nil {
			return API13, "no device files of a user's"
		}
		if q.Live != nil || q.Rung != 0 || q.Compiled != nil || q.Characterization != nil {
			return API11, "neither live devices nor rungs to choose"
		}
	}
	named := 0
	switch q := request.(type) {
	case interface{ GetSpace() *pb.Space }:
		named = len(q.GetSpace().GetAxes())
	case interface{ GetConfigs() *pb.ConfigSet }:
		named = len(q.GetConfigs().GetConfigs().GetAxes())
	case interface{ GetConfig() *pb.Configs }:
		named = len(q.GetConfig().GetAxes())
	}
	if named > 0 {
		return API12, "no named axes of configurations"
	}
	return "", ""
}

// laterTypes are the types of operands that came after API 1.2.0.
func laterTypes() (text string) {
	for _, t := range gemm.DTypes() {
		if t > gemm.INT8 {
			text += " nor " + t.String()
		}
	}
	return strings.Replace(text, " nor", ", nor", 1)
}

// problemsInAPI12 is inAPI12 for the problems of a request.
func problemsInAPI12(request any) bool {
	switch q := request.(type) {
	case interface{ GetProblem() *pb.Problem }:
		return inAPI12(q.GetProblem())
	case interface{ GetProblems() []*pb.Problem }:
		for _, p := range q.GetProblems() {
			if !inAPI12(p) {
				return false
			}
		}
	}
	return true
}

// CommonAPI returns the last of our versions that the other side has too. The error says what each side speaks.
func CommonAPI(ours, theirs []string) (string, error) {
	for _, v := range slices.Backward(ours) {
		if slices.Contains(theirs, v) {
			return v, nil
		}
	}
	return "", fmt.Errorf("it speaks API %s, this origami speaks %s", list(theirs), list(ours))
}

func list(versions []string) string {
	if len(versions) == 0 {
		return "(none)"
	}
	return strings.Join(versions, ", ")
}

// Sizes cross the wire as 64-bit integers; on a platform with smaller ints they would wrap silently.
var _ [bits.UintSize/64 - 1]struct{}
