//go:build tools

// Package tools holds what is built as a test and so cannot be a tool in go.mod.
package tools

import (
	// The conformance tests of Kubernetes, among them those for storage.
	_ "k8s.io/kubernetes/test/e2e"
)
