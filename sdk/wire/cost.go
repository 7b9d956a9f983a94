package wire

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
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
	s := shapeOf(m.ProtoReflect().Descriptor())
	if err := w.message(data, s, 0); err != nil {
		return 0, err
	}
	return most - w.left, nil
}

// shape is what decoding the fields of a message type allocates.
type shape struct {
	size   int          // of the structure
	fields []fieldShape // by number; the others are unknown
}

type fieldShape struct {
	kind    fieldKind
	message *shape // of message and messages
}

type fieldKind uint8

const (
	otherField fieldKind = iota // a number, or not a field of this type
	textField
	messageField
	varintsField // a list of numbers with at least a byte of the wire each
	fixedField   // a list of numbers with all of their bytes on the wire
	textsField
	messagesField
)

// mostFields bounds the table of a shape. Fields with higher numbers count as unknown, which costs more.
const mostFields = 1 << 10

var shapes = struct {
	sync.RWMutex
	of map[protoreflect.FullName]*shape
}{of: map[protoreflect.FullName]*shape{}}

func shapeOf(d protoreflect.MessageDescriptor) *shape {
	shapes.RLock()
	s := shapes.of[d.FullName()]
	shapes.RUnlock()
	if s != nil {
		return s
	}
	shapes.Lock()
	defer shapes.Unlock()
	return buildShape(d)
}

// buildShape makes the shape of a type and of all types in it. The caller holds the lock.
func buildShape(d protoreflect.MessageDescriptor) *shape {
	if s := shapes.of[d.FullName()]; s != nil {
		return s
	}
	s := &shape{size: 512} // for a type that the program does not have
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName()); err == nil {
		s.size = int(reflect.TypeOf(t.Zero().Interface()).Elem().Size())
		s.size += s.size/8 + 2*textSize // what the allocator rounds up to
	}
	shapes.of[d.FullName()] = s // before the fields: a type may contain itself
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		number := int(f.Number())
		if number >= mostFields {
			continue
		}
		for len(s.fields) <= number {
			s.fields = append(s.fields, fieldShape{})
		}
		s.fields[number] = fieldOf(f)
	}
	return s
}

func fieldOf(d protoreflect.FieldDescriptor) fieldShape {
	isText := d.Kind() == protoreflect.StringKind || d.Kind() == protoreflect.BytesKind
	switch {
	case d.Message() != nil && d.IsList():
		return fieldShape{messagesField, buildShape(d.Message())}
	case d.Message() != nil:
		return fieldShape{messageField, buildShape(d.Message())}
	case isText && d.IsList():
		return fieldShape{kind: textsField}
	case isText:
		return fieldShape{kind: textField}
	case !d.IsList():
		return fieldShape{kind: otherField}
	case d.Kind() == protoreflect.DoubleKind:
		return fieldShape{kind: fixedField}
	default:
		return fieldShape{kind: varintsField}
	}
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

func (w *walk) message(b []byte, s *shape, depth int) error {
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
		var f fieldShape
		if int(num) < len(s.fields) {
			f = s.fields[num]
		}
		if f.kind == varintsField || f.kind == fixedField || f.kind == messageField {
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

// field charges for one record of a message: whole bytes on the wire, with content if it is one of bytes.
func (w *walk) field(f fieldShape, isText bool, content []byte, whole, depth int) error {
	switch kind := f.kind; {
	case (kind == varintsField || kind == fixedField) && !isText:
		return w.charge(growth * max(numberSize, whole))
	case kind == otherField || !isText: // kept as it is
		return w.charge(growth * whole)
	case kind == varintsField:
		return w.charge(numberSize * len(content))
	case kind == fixedField:
		return w.charge(len(content))
	case kind == textField:
		return w.charge(textSize + len(content))
	case kind == textsField:
		return w.charge(growth*headerSize + textSize + len(content))
	default:
		if err := w.charge(f.message.size + growth*8); err != nil {
			return err
		}
		return w.message(content, f.message, depth+1)
	}
}
