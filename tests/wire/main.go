// Command wire prints the published descriptors of the CSI specification: one
// JSON object, full name to facts. The test beside it compares them with ours.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type facts map[string]any

// contract collects the facts of one file by full name.
type contract map[protoreflect.FullName]facts

func main() {
	file := csi.File_csi_proto
	found := contract{}
	found.messages(file.Messages())
	found.enums(file.Enums())
	found.services(file.Services())
	for i := range file.Extensions().Len() {
		e := file.Extensions().Get(i)
		found.field(e, "extension")
		found[e.FullName()]["extends"] = e.ContainingMessage().FullName()
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (c contract) messages(all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		m := all.Get(i)
		c[m.FullName()] = facts{
			"kind": "message", "options": options(m), "reserved": messageRanges(m.ReservedRanges()),
		}
		for j := range m.Fields().Len() {
			c.field(m.Fields().Get(j), "field")
		}
		c.messages(m.Messages())
		c.enums(m.Enums())
	}
}

func (c contract) field(f protoreflect.FieldDescriptor, kind string) {
	oneof, typeName := "", f.Kind().String()
	if o := f.ContainingOneof(); o != nil {
		oneof = string(o.Name())
	}
	if m := f.Message(); m != nil {
		typeName = string(m.FullName())
	}
	if e := f.Enum(); e != nil {
		typeName = string(e.FullName())
	}
	c[f.FullName()] = facts{
		"kind": kind, "number": f.Number(), "type": typeName, "repeated": f.IsList() || f.IsMap(),
		"map": f.IsMap(), "oneof": oneof, "options": options(f),
	}
}

func (c contract) enums(all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		e := all.Get(i)
		c[e.FullName()] = facts{
			"kind": "enum", "options": options(e), "reserved": enumRanges(e.ReservedRanges()),
		}
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			c[v.FullName()] = facts{
				"kind": "value", "number": v.Number(), "enum": e.FullName(), "options": options(v),
			}
		}
	}
}

func (c contract) services(all protoreflect.ServiceDescriptors) {
	for i := range all.Len() {
		s := all.Get(i)
		c[s.FullName()] = facts{"kind": "service", "options": options(s)}
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			c[m.FullName()] = facts{
				"kind": "method", "input": m.Input().FullName(), "output": m.Output().FullName(),
				"client_stream": m.IsStreamingClient(), "server_stream": m.IsStreamingServer(),
				"options": options(m),
			}
		}
	}
}

// options lists the specification's own marks, such as csi_secret, with their values.
func options(d protoreflect.Descriptor) []string {
	marks := []string{}
	proto.RangeExtensions(d.Options(), func(t protoreflect.ExtensionType, value any) bool {
		marks = append(marks, fmt.Sprintf("%s=%v", t.TypeDescriptor().FullName(), value))
		return true
	})
	sort.Strings(marks)
	return marks
}

// messageRanges gives first and last number; the descriptor's end is exclusive.
func messageRanges(all protoreflect.FieldRanges) [][2]int32 {
	ranges := [][2]int32{}
	for i := range all.Len() {
		r := all.Get(i)
		ranges = append(ranges, [2]int32{int32(r[0]), int32(r[1]) - 1})
	}
	return ranges
}

// enumRanges gives first and last number.
func enumRanges(all protoreflect.EnumRanges) [][2]int32 {
	ranges := [][2]int32{}
	for i := range all.Len() {
		r := all.Get(i)
		ranges = append(ranges, [2]int32{int32(r[0]), int32(r[1])})
	}
	return ranges
}
