"""Other people's models: Hugging Face folders and PyTorch modules. None of their code is run."""

from npformer.interop.export import export_folder
from npformer.interop.folder import LoadedFolder, load_folder

__all__ = ["LoadedFolder", "export_folder", "load_folder"]
