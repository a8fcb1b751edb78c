"""Volumes of pods: emptyDir, hostPath and images; whatever else a pod wants keeps it waiting."""
