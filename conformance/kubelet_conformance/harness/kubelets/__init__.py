"""The kubelets a case can run against, behind one interface (`base.Kubelet`)."""
