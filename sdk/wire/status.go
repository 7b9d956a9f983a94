package wire

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toDiagnostic(err error) *pb.Diagnostic {
	var d *diag.Error
	if !errors.As(err, &d) {
		d = &diag.Error{What: err.Error()}
	}
	return &pb.Diagnostic{
		Kind: pb.Diagnostic_Kind(d.Kind) + pb.Diagnostic_KIND_INTERNAL, What: cut(d.What), Where: cut(d.Where),
		Fix: cut(d.Fix), Code: cut(string(d.Code)), Subject: cut(d.Subject),
	}
}

// fromDiagnostic takes an unknown kind for an internal one: the text is what matters.
func fromDiagnostic(q *pb.Diagnostic) *diag.Error {
	d := &diag.Error{
		What: cut(q.GetWhat()), Where: cut(q.GetWhere()), Fix: cut(q.GetFix()), Code: diag.Code(cut(q.GetCode())),
		Subject: cut(q.GetSubject()),
	}
	if k := q.GetKind(); k > pb.Diagnostic_KIND_INTERNAL && k <= pb.Diagnostic_KIND_DEVICE {
		d.Kind = diag.Kind(k - pb.Diagnostic_KIND_INTERNAL)
	}
	return d
}

var statusCodes = [...]codes.Code{
	diag.Internal: codes.Internal, diag.Input: codes.InvalidArgument, diag.Plugin: codes.DataLoss,
	diag.Device: codes.FailedPrecondition,
}

// toStatus turns an error of the model into a gRPC status that carries it as a Diagnostic. A status stays as it is.
func toStatus(err error) error {
	if _, is := err.(interface{ GRPCStatus() *status.Status }); is { // what wraps one is none
		return err
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	s, detailErr := status.New(statusCodes[diag.KindOf(err)], cut(err.Error())).WithDetails(toDiagnostic(err))
	if detailErr != nil {
		return status.Error(codes.Internal, cut(err.Error()))
	}
	return s.Err()
}

// missingStatus says that the plugin does not hold something.
func missingStatus(r pb.Missing_Resource) error {
	s, err := status.New(codes.NotFound, r.String()).WithDetails(&pb.Missing{Resource: r})
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return s.Err()
}

// Answered reports whether a plugin's server itself gave this error, as opposed to gRPC, the connection or the
// operating system: its status carries a Diagnostic or Missing.
func Answered(err error) bool {
	diagnostic, missing := details(err)
	return diagnostic != nil || missing != pb.Missing_RESOURCE_UNSPECIFIED
}

// LostDevice reports whether an executor said that a call has cost it its device context.
func LostDevice(err error) bool {
	diagnostic, _ := details(err)
	return diagnostic.GetKind() == pb.Diagnostic_KIND_PLUGIN
}

func details(err error) (*pb.Diagnostic, pb.Missing_Resource) {
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return nil, 0
	}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *pb.Diagnostic:
			return d, 0
		case *pb.Missing:
			return nil, d.GetResource()
		}
	}
	return nil, 0
}
