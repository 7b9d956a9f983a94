package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	_ "google.golang.org/grpc/encoding/proto" // the codec
	"google.golang.org/protobuf/reflect/protoreflect"
)

// everyField calls do with every field that is set, of the message and of its nested messages.
func everyField(m protoreflect.Message, do func(protoreflect.Message, protoreflect.FieldDescriptor)) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case field.IsMap():
			if m.Has(field) {
				do(m, field)
			}
		case field.IsList():
			if m.Has(field) && field.Message() != nil {
				for i := range m.Get(field).List().Len() {
					everyField(m.Get(field).List().Get(i).Message(), do)
				}
			}
			if m.Has(field) {
				do(m, field)
			}
		case field.Message() != nil:
			if m.Has(field) {
				everyField(m.Mutable(field).Message(), do)
			}
		default:
			do(m, field)
		}
	}
}

// everyScalar replaces every value, also in lists and maps, for which other returns a valid one.
func everyScalar(m protoreflect.Message, other func(protoreflect.FieldDescriptor,
	protoreflect.Value) protoreflect.Value) {
	everyField(m, func(m protoreflect.Message, field protoreflect.FieldDescriptor) {
		switch {
		case field.IsMap():
			m.Get(field).Map().Range(func(k protoreflect.MapKey, old protoreflect.Value) bool {
				if v := other(field.MapValue(), old); v.IsValid() {
					m.Mutable(field).Map().Set(k, v)
				}
				return true
			})
		case field.IsList():
			for i := range m.Get(field).List().Len() {
				if v := other(field, m.Get(field).List().Get(i)); v.IsValid() {
					m.Mutable(field).List().Set(i, v)
				}
			}
		default:
			if v := other(field, m.Get(field)); v.IsValid() {
				m.Set(field, v)
			}
		}
	})
}

// everyText changes the JSON in a message.
func everyText(m protoreflect.Message, change func([]byte) []byte) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); strings.HasSuffix(string(f.Name()), "json") && m.Has(f) {
			m.Set(f, protoreflect.ValueOfBytes(change(m.Get(f).Bytes())))
		}
	}
}

var jsonNumber = regexp.MustCompile(`([:,\[])-?[0-9][-+.0-9e]*`)

// everyJSONNumber replaces the numbers in the JSON of a message.
func everyJSONNumber(m protoreflect.Message, x any) {
	everyText(m, func(text []byte) []byte { return jsonNumber.ReplaceAll(text, fmt.Appendf(nil, "${1}%v", x)) })
}

// jsonLists returns a value with other lists in it.
func jsonLists(v any, other func([]any) []any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			v[key] = jsonLists(x, other)
		}
	case []any:
		for i, x := range v {
			v[i] = jsonLists(x, other)
		}
		return other(v)
	}
	return v
}

func everyFloat(x float64) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		everyJSONNumber(m, x)
		everyScalar(m, func(field protoreflect.FieldDescriptor, _ protoreflect.Value) (v protoreflect.Value) {
			if field.Kind() == protoreflect.DoubleKind {
				v = protoreflect.ValueOfFloat64(x)
			}
			return v
		})
	}
}

func everyInteger(x int64) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		everyJSONNumber(m, x)
		everyScalar(m, func(field protoreflect.FieldDescriptor, _ protoreflect.Value) (v protoreflect.Value) {
			switch field.Kind() { //nolint:exhaustive // the messages have no others
			case protoreflect.Int64Kind:
				v = protoreflect.ValueOfInt64(x)
			case protoreflect.Int32Kind:
				v = protoreflect.ValueOfInt32(int32(x))
			case protoreflect.Uint64Kind:
				v = protoreflect.ValueOfUint64(uint64(x))
			case protoreflect.Uint32Kind:
				v = protoreflect.ValueOfUint32(uint32(x))
			}
			return v
		})
	}
}

func everyNumber(x int64) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		everyFloat(float64(x))(m)
		everyInteger(x)(m)
	}
}

// everyEnum also replaces enums that are stored as columns of bytes.
func everyEnum(x byte) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		everyScalar(m, func(field protoreflect.FieldDescriptor, old protoreflect.Value) (v protoreflect.Value) {
			switch {
			case field.Kind() == protoreflect.EnumKind:
				v = protoreflect.ValueOfEnum(protoreflect.EnumNumber(x))
			case field.Name() == "bounds" && len(old.Bytes()) > 0:
				v = protoreflect.ValueOfBytes(bytes.Repeat([]byte{x}, len(old.Bytes())))
			}
			return v
		})
	}
}

func everyList(change func(protoreflect.List), other func([]any) []any) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		everyText(m, func(text []byte) []byte {
			var v any
			if !bytes.Contains(text, []byte("[")) || json.Unmarshal(text, &v) != nil {
				return text
			}
			text, _ = json.Marshal(jsonLists(v, other))
			return text
		})
		everyField(m, func(m protoreflect.Message, field protoreflect.FieldDescriptor) {
			if field.IsList() && m.Get(field).List().Len() > 0 {
				change(m.Mutable(field).List())
			}
		})
	}
}
