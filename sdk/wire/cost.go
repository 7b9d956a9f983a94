package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A message can take far more memory than bytes on the wire: an empty element of a list is two bytes there and a
// structure of some hundred bytes here. cost walks over an encoded message and adds up what decoding it would
// allocate, before anything is decoded. It reads tags and lengths only, so that the columns of a list cost nothing.

// What decoding allocates beyond the bytes themselves.
const (
	// growth is for what append enlarges one by one: the old and the new array, with room to spare.
	growth = 3
	// textSize is for the bytes of a string, rounded up to what the allocator has.
	textSize = 16
	// headerSize is a string or bytes inside a list.
	headerSize = 24
	// messageSize is more than the structure of any message inside another.
	messageSize = 512
	// numberSize is the largest number.
	numberSize = 8
	// entrySize is an entry of a map in JSON, without its text.
	entrySize = 256
)

// errTooCostly says that a message takes more memory than it may.
var errTooCostly = errors.New("too much memory")

// cost adds up what decoding a message takes, in bytes. It fails if that is more than most, and for a malformed
// message.
func cost(data []byte, m proto.Message, most int) (int, error) {
	w := walk{left: most}
	if err := w.message(data, m.ProtoReflect().Descriptor(), 0); err != nil {
		return 0, err
	}
	return most - w.left, nil
}

// walk is one walk over a message.
type walk struct{ left int }

func (w *walk) charge(n int) error {
	if w.left -= n; w.left < 0 {
		return errTooCostly
	}
	return nil
}

// mostDepth bounds messages within messages. Those of the protocol have five levels.
const mostDepth = 64

func (w *walk) message(b []byte, d protoreflect.MessageDescriptor, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("more than %d messages within each other", mostDepth)
	}
	start := w.left
	var seen uint64 // the fields met so far that come once, by the low bits of their numbers
	for len(b) > 0 {
		num, wireType, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		var content []byte
		var n int
		isText := wireType == protowire.BytesType
		if isText {
			content, n = protowire.ConsumeBytes(b[tag:])
		} else {
			n = protowire.ConsumeFieldValue(num, wireType, b[tag:])
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		f := d.Fields().ByNumber(num)
		if f != nil && !text(f) && (f.Message() != nil) != f.IsList() {
			// Encoders write a list of numbers, or a message that is not in a list, as one record. The decoder adds each
			// further one to the first and copies lists for it, so that many small records take quadratic time.
			bit := uint64(1) << (num % 64)
			if seen&bit != 0 && isText {
				if err := w.charge(growth * (start - w.left)); err != nil {
					return err
				}
			}
			seen |= bit
		}
		if err := w.field(f, isText, content, tag+n, depth); err != nil {
			return err
		}
		b = b[tag+n:]
	}
	return nil
}

// text reports whether a field is texts or bytes.
func text(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind
}

// field charges for one record of a message: whole bytes on the wire, with content if it is one of bytes. An unknown
// field is nil.
func (w *walk) field(f protoreflect.FieldDescriptor, isText bool, content []byte, whole, depth int) error {
	switch {
	case f == nil || !f.IsList() && (!isText || f.Message() == nil && !text(f)): // kept as it is
		return w.charge(growth * whole)
	case !isText:
		return w.charge(growth * max(numberSize, whole))
	case f.Message() != nil:
		if err := w.charge(messageSize + growth*8); err != nil {
			return err
		}
		return w.message(content, f.Message(), depth+1)
	case text(f) && f.IsList():
		return w.charge(growth*headerSize + textSize + len(content))
	case text(f):
		return w.charge(textSize + len(content))
	case f.Kind() == protoreflect.DoubleKind:
		return w.charge(len(content))
	default: // numbers of at least a byte each
		return w.charge(numberSize * len(content))
	}
}
