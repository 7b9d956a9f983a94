package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/core/limit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// The limits of messages, see docs/plugin-protocol.md. The largest honest answer lists arch.MaxSpace configurations,
// all of them rejected with a reason in words: about 20 MiB, which take 60 MiB when they are decoded.
const (
	// MaxAnswer is how many bytes a plugin may answer to a call about many configurations.
	MaxAnswer = 32 << 20
	// MaxAnswerMemory is how many bytes the host may allocate to decode such an answer.
	MaxAnswerMemory = 96 << 20
	// MaxShortAnswer and MaxShortAnswerMemory are the same for other calls. Calibration has the longest of these answers,
	// with some 400 KiB. An executor compiles several kernels at a time.
	MaxShortAnswer       = 2 << 20
	MaxShortAnswerMemory = 16 << 20
	// MaxRequest is how many bytes a host may send. The largest request has two files of kernels.
	MaxRequest = 2*int(limit.Kernels) + 8<<20
	// maxRequestMemory is how many bytes a plugin may allocate to decode a request.
	maxRequestMemory = 2*int(limit.Kernels) + 64<<20
	// maxOutput bounds a message of StreamStdio. go-plugin sends parts of 1 KiB.
	maxOutput = 64 << 10
	// maxHeaders bounds the headers and trailers of an answer, in which errors travel.
	maxHeaders = 256 << 10
	// entriesPerCall is how many entries an answer of Rank may have.
	entriesPerCall = arch.MaxSpace
)

// OversizeError says that a message was refused for its size.
type OversizeError struct{ what string }

// Error says what is too large.
func (e *OversizeError) Error() string { return e.what }

// IsOversize reports whether a message was refused for the memory that it takes.
func IsOversize(err error) bool {
	var oversize *OversizeError
	return errors.As(err, &oversize)
}

// isTooLarge reports whether a call failed because its answer is too large, here or in the eyes of gRPC.
func isTooLarge(err error) bool {
	return IsOversize(err) || status.Code(err) == codes.ResourceExhausted
}

// DialOptions are for the connection of a host to a plugin. They bound what it receives.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxOutput), grpc.MaxCallSendMsgSize(MaxRequest)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithChainUnaryInterceptor(boundAnswer),
		grpc.WithChainStreamInterceptor(withoutBroker),
	}
}

// withoutBroker refuses go-plugin's stream for further connections. The protocol has none, and a plugin could make the
// host start as many goroutines as it sends messages there.
func withoutBroker(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasPrefix(method, "/plugin.GRPCBroker/") {
		return nil, status.Error(codes.Unimplemented, "the protocol has no broker")
	}
	return open(ctx, d, conn, method, opts...)
}

// boundAnswer makes a call whose answer takes no more than its limits.
func boundAnswer(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	bounded, most := &codec{CodecV2: protobuf, most: MaxShortAnswerMemory}, MaxShortAnswer
	switch reply.(type) {
	case *pb.CandidatesResponse, *pb.EstimateResponse, *pb.TermsResponse, *pb.RankResponse, *pb.EstimateWithResponse:
		bounded.most, most = MaxAnswerMemory, MaxAnswer
	}
	err := invoke(ctx, method, req, reply, conn, append(opts[:len(opts):len(opts)],
		grpc.MaxCallRecvMsgSize(most), grpc.ForceCodecV2(bounded))...)
	if refused := bounded.refused.Load(); err != nil && refused != nil {
		return refused
	}
	return err
}

// ServerOptions bound what a plugin receives, and what it holds when it is no longer asked.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(
			ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler,
		) (any, error) {
			defer keep.Asked()()
			return h(ctx, q)
		}),
		grpc.MaxRecvMsgSize(MaxRequest),
		grpc.ForceServerCodecV2(&codec{CodecV2: protobuf, most: maxRequestMemory}),
	}
}

var protobuf = encoding.GetCodecV2("proto")

// codec is gRPC's, and decodes no message that takes more memory than most.
type codec struct {
	encoding.CodecV2
	most int
	// refused is the error about a message that was too large. gRPC passes only the text of an error on.
	refused atomic.Pointer[OversizeError]
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message", v)
	}
	pool := mem.DefaultBufferPool()
	if data.Len() > maxPooled {
		pool = mem.NopBufferPool{}
	}
	buffer := data.MaterializeToBuffer(pool)
	defer buffer.Free()
	wire := buffer.ReadOnlyData()
	if _, err := cost(wire, m, c.most); errors.Is(err, errTooCostly) {
		err := &OversizeError{fmt.Sprintf("a message of %d bytes that takes more than %v of memory", len(wire),
			limit.Size(c.most))}
		c.refused.Store(err)
		return err
	} else if err != nil {
		return err
	}
	return proto.Unmarshal(wire, m)
}

// maxPooled is the size from which a buffer is not kept for the next message: few are as large.
const maxPooled = 1 << 20
