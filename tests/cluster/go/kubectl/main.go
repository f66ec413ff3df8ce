// kubectl, as Kubernetes builds it, without its plugins' and credentials' extras.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	command := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		// Prints it in kubectl's own words and exits.
		util.CheckErr(err)
		os.Exit(1)
	}
}
